// Package eventlog writes the log in which people follow runs. It has a line for the start of a
// run, for each task on each host, and for the end of the run. The result of a failed task
// follows its line as task output of several lines. While the runs of a CR fail in the same way,
// only the first of them has the output.
//
// Everything that comes from a run is untrusted. The log shows results sanitized and without
// control characters. Each line of task output begins with the CR, so that no text that a task
// returns looks like a log record. The log never shows what Ansible has printed: that has module
// arguments, and with some versions of Ansible also texts that no_log should hide.
//
// A Screen shows the same to people at a terminal: in place of the lines of a Log, and to
// those who run content once.
//
// The package does not influence runs and does not judge their outcome. It keeps digests of a
// run's failures until the CR's next run, and nothing else.
package eventlog
