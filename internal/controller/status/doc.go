// Package status turns the result of a run into conditions on a CR.
//
// A Report gives one moment of a CR's life as the conditions that Ensign owns: Started, Finished,
// Paused, Refused. Patch merges a report into the object's present status and returns the JSON
// Patch of the difference, or nothing when there is none. The conditions of kstatus follow from the
// same reports (ready.go) and from the health of children (health.go). That patch never has
// condition types of other writers or the status keys that a role wrote itself.
//
// The package computes; it does not talk to the API server, keeps no state and
// does not know when a run starts or ends.
//
// # Gotchas
//
//   - A merge patch would replace the whole list of conditions, and lands on any UID. So the
//     package makes a JSON Patch by index, with tests.
package status
