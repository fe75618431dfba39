// Package plan lists the fault plans: which fault strikes at which point of which
// operation. A plan is a value with a stable name, "update/status-result/lost",
// and the lists are products of their dimensions, less what cannot happen.
//
// The package is pure: it does not know how an operation is performed, how a
// point is found, or how a fault is made.
package plan
