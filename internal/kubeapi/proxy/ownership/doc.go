// Package ownership adds a run's CR as the owner of the objects that the run writes, for every
// format in which the API takes writes. It is pure: Write gets the body of a request and the
// live object, and returns the body to forward.
//
// An object is linked to its owner by an owner reference where Kubernetes' garbage collector
// accepts one: within one namespace, or where the owner is cluster-scoped. Elsewhere the garbage
// collector would delete an object with such a reference at once. There the link is a pair of
// annotations, those of operator-lib.
//
// These rules hold for every format:
//
//   - A write that creates an object links it to the owner.
//   - A write to an object that is already linked keeps that link. It renews a reference that has
//     another version of the owner's kind than the manager watches: the garbage collector cannot
//     find an owner in a version that is not served any more, and the object would outlive it. All
//     else in the reference stays. A patch that does not touch metadata renews it too, if the live
//     object can be read: that is how kubernetes.core changes existing objects. An apply is
//     preceded by a patch of the proxy (Before).
//   - A write to an object of a predecessor, a deleted CR of the same kind and name, links the
//     object to the owner: otherwise the garbage collector would delete it during the run. This
//     needs a look at the live object, so it holds only where the write needs that anyway.
//   - A write of a chart's run to an object with Helm's label and annotations links it: the release is
//     the owner's, also those of its objects that were adopted or that Helm's command has applied
//     since.
//   - A write to any other object does not link it. It keeps references to other objects, and a
//     reference to the owner that the role wrote. Only a reference for which the garbage collector
//     would delete the object is replaced by annotations.
//   - The owner itself is never linked to itself.
//   - An object with Helm's annotation helm.sh/resource-policy: keep is not linked: it is to
//     outlive its owner. A write that adds the annotation to a child removes its reference.
//   - The package never sets controller or blockOwnerDeletion in a reference. It keeps them
//     where the role has set them.
//
// A body that needs no change is returned byte by byte.
//
// The labels of a Target are set on every object that a write creates, replaces or applies, and
// kept by patches. The owner itself and Helm's records of releases get none.
//
// The package does not know requests, nor which kinds are stored. It must not be used for
// kinds that are not stored, or for subresources other than status.
//
// # Gotchas
//
//   - For Kubernetes' own kinds, a write of status changes metadata too, with its owner
//     references.
//   - The package computes the result of a patch with the libraries of the API server. For JSON
//     patches others would not do: gopkg.in/evanphx/json-patch.v4 copies a missing member as
//     null and replaces a missing one, which RFC 6902 and other libraries refuse.
package ownership
