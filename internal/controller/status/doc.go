// Package status turns what came out of a run into conditions on a CR.
//
// A Report says what one moment of a CR's life means for the conditions that
// Ensign owns: Started, Finished, Paused, Refused. Patch merges a report into
// what stands in the object now and gives the JSON Patch that makes the
// difference, or nothing when there is none. The conditions of kstatus
// follow from the same reports (ready.go) and from the health of children (health.go). Condition types of others and the
// status keys that a role wrote itself are never part of that patch.
//
// The package computes; it does not talk to the API server, keeps no state and
// does not know when a run starts or ends.
//
// # Gotchas
//
//   - A merge patch would replace the whole list of conditions, and lands on any UID. So the
//     package makes a JSON Patch by index, with tests.
package status
