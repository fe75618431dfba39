// Package jobevent reads what ansible-runner reports about a run and says what
// came out of it.
//
// Decode reads the job events that the program of runs reports, and the text that
// was displayed past them. Summary
// folds the events of one run into the few facts that its outcome and its
// status need, in bounded memory. Judge is the table from how the run ended and
// what its Summary holds to an Outcome. Sanitize makes a task's result fit to
// be shown.
//
// Everything in an event may hold text of a custom resource's author. The
// package never executes, expands or trusts it. The program of runs bounds the size
// of each event, and no text can become an event, a failure or a wish to requeue.
//
// The package does not start processes, log, write status, or decide when a
// run comes again.
//
// # Gotchas
//
//   - Never show Event.Stdout. It holds module arguments, and with some versions of Ansible
//     what no_log hides. Show a sanitized Result.
//   - What Ansible displays beside events (verbose lines, warnings, errors) does not respect
//     no_log. Once a task has started, Decode passes on only the error that ended the run and
//     what was printed past Ansible, and of both only words that hold no value (displayed.go).
//   - A task without a name is named by its action, which may be a template. An action that
//     Ansible did not resolve is hidden.
//   - Exit code 0 is not success: a play that matches no host, a failure before end_play or
//     clear_host_errors, and a plugin that ends the process all exit with 0. Exit code 4 means
//     "unreachable" and also "variables refused". Only the closing statistics tell, and only
//     the first ones count.
//   - The statistics count hosts with results alone. For a play without a result, its start
//     tells that it had a host, unless Ansible says later that none matched.
//   - Rescued failures show in the closing statistics only, as a number for each host. Summary
//     takes the earlier failures out.
package jobevent
