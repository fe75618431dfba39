// Package ledger separates the writes of a CR's own runs from foreign changes, those that
// anybody else makes. So the writes of a run do not trigger another run of the same CR.
//
// A write's response and the watch event of the same write arrive in either order:
//
//   - The ledger keeps the answers of the API server until the watch has shown the writes.
//   - The ledger holds a watch event back while a pending write may be its cause. Complete
//     decides about it once the write has a response.
//
// A write whose response is not known, or does not say which object it changed, is kept as well.
// It explains one event of each object that it may have written: the first one of a kind that
// the write can cause. So such a write cannot trigger its own CR again and again. It is kept for
// one to two intervals of SweepUnidentified. A foreign change of the same object in that time,
// before the write's own event, is missed: at most one for each such write and object. The next
// reconcile period finds it.
//
// In all other cases where the ledger cannot tell who made a change, it takes the change for
// foreign: that costs a run. The opposite mistake would miss drift.
//
// The package is state behind a lock. It knows no client, cache or clock.
package ledger
