// Package crlog shows one CR's part of a manager's log.
//
// Filter decides line by line, in the formats console and json (docs/reference-logs.md); it is pure.
// Copy applies it to a file, Pods to the pods of managers, also to those that come while
// it reads.
//
// A log has texts that runs returned. They are shown without control characters.
package crlog
