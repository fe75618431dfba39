// Package hybrid runs examples/hybrid, an operator of a chart, a role and a reconciler in Go, on a
// control plane of its own. It uses the CRDs and the rights of its config/default, and its program
// as a process, because nothing runs in pods there. test/node does the same with its image.
package hybrid
