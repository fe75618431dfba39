// Package ledger separates the writes of a CR's own runs from foreign changes, those that
// anybody else makes. So the writes of a run do not trigger another run of the same CR.
//
// A write's response and the watch event of the same write arrive in either order:
//
//   - The ledger keeps what the API server answered until the watch has shown the write.
//   - The ledger holds a watch event back while a pending write may be its cause. Complete
//     decides about it once the write has a response.
//
// Where the ledger cannot tell who made a change, it takes the change for foreign: that costs
// a run. The opposite mistake would miss drift.
//
// The package is state behind a lock. It knows no client, cache or clock.
package ledger
