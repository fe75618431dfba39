// Package visitors holds the three operators of examples/visitors against each other, on a control plane
// of its own: for the same VisitorsApp they make the same objects. Nothing runs in pods there: what is
// in them, and what a browser shows of it, is looked at by test/node.
package visitors
