// Package children brings CRs back when an object changes that belongs to them, or
// to which they refer.
//
// It is told by the API proxy what runs write, as access.Follower. Where a run has
// written a child, the child's kind is watched for the watch of its CR from then
// on, and a record of the kinds lets the next manager watch them before anything
// drifts. Informers keep of each object what package reduce makes of it, and
// package ledger tells the writes of a CR's own run from those of others. What is
// news of a CR goes to whoever follows its watch; until somebody does, it waits.
//
// The package does not decide whether anything runs, and it writes nothing to the
// API server but its record.
package children
