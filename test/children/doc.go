// Package children shows on a real control plane, with its garbage collector and
// controllers, whose the objects are that runs write, and the triggers of a CR.
//
//   - Ownership: what runs write belongs to their CR, in every way of writing and each
//     time, and nothing else goes with the CR. Most rows write through a proxy in the
//     test's own process; a sample, of those that take long, goes through a real manager
//     with kubernetes.core.
//   - Drift: a real manager and real roles repair children, follow what a CR refers to,
//     and nothing else.
//   - Informers of kinds that come and go: one that may not be read, one whose CRD is
//     made later, one whose CRD is deleted and made again, and others beside them that
//     notice nothing.
package children
