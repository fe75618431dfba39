// Package fleet is for people who look after the CRs of a cluster: it shows what became of
// each (Look, Follow, Table) and steers them by their annotations (Order, Order.Await).
//
// RowOf decides what a CR's status means; it is pure. Everything that a CR contains is
// untrusted text: rows have it without control characters.
//
// The package writes nothing but annotations, and runs nothing: that is what the manager
// does.
package fleet
