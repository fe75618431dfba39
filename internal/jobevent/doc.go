// Package jobevent reads what ansible-runner reports about a run and says what
// came out of it.
//
// Decode takes ansible-runner's standard output apart: what carries the run's
// nonce is a job event, everything else is text that somebody printed. Summary
// folds the events of one run into the few facts that its outcome and its
// status need, in bounded memory. Judge is the table from how the run ended and
// what its Summary holds to an Outcome. Sanitize makes a task's result fit to
// be shown.
//
// Everything in an event may hold text of a custom resource's author. The
// package never executes, expands or trusts it: memory is bounded whatever a
// line holds, and no text can become an event, a failure or a wish to requeue.
//
// The package does not start processes, log, write status, or decide when a
// run comes again.
package jobevent
