// Package fleet is for people who operate the CRs of a cluster: it shows the state of each
// (Look, Follow, Table) and controls them by their annotations (Order, Order.Await).
//
// RowOf decides what a CR's status means; it is pure. Everything that a CR contains is
// untrusted text: rows have it without control characters.
//
// The package only writes annotations. The manager runs the content.
package fleet
