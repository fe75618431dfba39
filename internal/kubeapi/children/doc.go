// Package children triggers a reconcile of a CR when one of its children changes, or an
// object to which the CR refers.
//
// The API proxy reports the writes of runs to Children (access.WriteObserver). When a run has
// written a child, Children watches the child's kind with an informer from then on. It saves the
// kinds that it watches in a record, so that the next manager watches them from its start. The
// informers keep each object in the form that package strip gives it. Package ledger separates the
// writes of a CR's own run from foreign changes. A foreign change becomes a notification in the
// queue of the CR's watch, where it stays until the watch's controller calls Subscribe.
//
// A child outside of its CR's namespace counts only if a run is known to have written it
// (ownership.go): its annotations could be a tenant's. The record has these ownership records, too.
//
// The package does not decide whether content runs. It writes nothing to the API server but
// its record.
//
// # Gotchas
//
//   - An owner reference does not say whether its owner is namespaced. Until a controller has
//     called Subscribe, a child's owner stands for two possible CRs.
//   - An informer's store is ahead of the events that its handlers get. A child that is absent
//     from the store may have a deletion event under way.
//   - A kind is watched in one version only.
package children
