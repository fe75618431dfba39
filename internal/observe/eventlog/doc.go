// Package eventlog writes the log that people read to follow runs: a line when
// a run starts, a line for each task on each host, a line when the run ends,
// and what a task that failed has returned, as a block: once, and not again while
// the runs of the CR fail in the same way.
//
// Everything that comes from a run is untrusted. Results are shown sanitized,
// text without control characters, and each line of a block begins with the CR
// that it belongs to, so that nothing a task returns can pass for a log record.
// What Ansible itself printed is never shown: it holds module arguments, and
// with some versions messages that no_log should hide.
//
// The package does not influence a run, keeps nothing of it but digests of its
// failures until the CR's next run, and does not decide what its outcome is.
package eventlog
