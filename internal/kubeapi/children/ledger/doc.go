// Package ledger tells the writes of a CR's own runs from the changes that others
// make, so that a run does not bring back the CR for which it works.
//
// A write and what a watch shows of it come in any order. So what the API server
// answered is noted, for as long as the watch may still show it, and what a watch
// shows while a write is on its way that may be its cause is kept back until the
// answer. A change that nobody can tell apart is taken for another's: that costs a
// run, and the other mistake would lose a drift.
//
// The package is pure state behind a lock. It knows no client, cache or clock.
package ledger
