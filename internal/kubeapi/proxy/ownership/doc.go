// Package ownership makes the objects that a run writes carry their owner, in
// every way that the API knows of writing an object. It is pure: a request's body
// and what is known of the live object in, the body to send out.
//
// The rules, whatever the way of writing:
//
//   - What a write makes is marked as the owner's: by an owner reference where
//     Kubernetes' garbage collector accepts one (within one namespace, or from a
//     cluster-scoped owner), and by operator-lib's annotations elsewhere, where a
//     reference would make it delete the object at once.
//   - What carries the mark already keeps it exactly as it stands, also where the
//     reference names another version of the owner's kind.
//   - What belonged to a CR of the same kind and name that is gone is the owner's, once it
//     is looked at: the garbage collector would delete it under the run.
//   - What else was there without the mark does not get it. References of others, and a
//     reference to the owner that the role wrote itself, are left alone; only one that
//     would delete the object becomes annotations.
//   - Nothing is marked as its own owner.
//   - References never say controller or blockOwnerDeletion, unless the role did.
//
// A body that need not change is passed on byte by byte.
//
// What a patch does is foretold by the libraries that the API server uses, and JSON patches
// need that most: gopkg.in/evanphx/json-patch.v4 copies a missing member as null and
// replaces one that is missing, which RFC 6902 and other libraries refuse.
//
// The package does not know requests, or which kinds are stored at all: what is not,
// and subresources other than status, must not be given to it.
//
// # Gotchas
//
//   - Kubernetes' own kinds take metadata from a write of status too, owner references among
//     it.
package ownership
