// Package crlog shows one CR's part of a manager's log.
//
// Filter decides line by line; it is pure. One rule reads both formats of a manager's log
// (docs/reference-logs.md): a record's fields are JSON in console, too.
// Copy applies it to a file, Pods to the pods of managers, also to those that come while
// it reads.
//
// A log has texts that runs returned. They are shown without control characters.
package crlog
