// Package jobevent reads the job events that ansible-runner reports about a run, and
// decides the outcome of the run.
//
//   - Decode reads job events, and text that belongs to no event, from the output of
//     ensign_run.py.
//   - Summary.Fold collects the parts of one run's events that its outcome and its status need, in
//     bounded memory.
//   - DetermineOutcome is a table: from the exit of the run's processes and the Summary to an Outcome.
//   - Sanitize makes a task's result safe to show.
//
// Any string of an event may hold text that the author of a custom resource wrote. The
// package never executes, expands or trusts such text. ensign_run.py bounds the size of
// each event. No text can become an event, a failure or a request to requeue.
//
// The package does not start processes, log, write status, or decide when a CR is
// reconciled again.
//
// # Gotchas
//
//   - Never show Event.Stdout. It holds module arguments and, with some versions of Ansible, values
//     that no_log hides. Show a sanitized Result.
//   - Text that Ansible displays outside of events (verbose lines, warnings, errors) does not
//     respect no_log. Once a task has started, Decode passes on only the error that ended the
//     run and text that was printed without Ansible, and of both only known messages without
//     values (SafeOutput).
//   - The name of a task without a name is its action, which may be a template. Decode hides
//     an action that Ansible did not resolve.
//   - Exit code 0 is not success: a play that matches no host, a failure before end_play or
//     clear_host_errors, and a plugin that ends the process all exit with 0. Exit code 4 means
//     "unreachable" and also "variables refused". Only the first closing statistics of a run
//     tell whether it succeeded.
//   - The statistics count an unreachable host also after a meta task has cleared its error. So
//     ensign_run.py adds which hosts are still lost (HostStats.Lost). Failures have no such
//     addition: Ansible exits with 0 after a failure that clear_host_errors cleared, but nobody
//     has handled it.
//   - The statistics count only hosts with results. For a play without a result, its start
//     event shows that it had a host, unless Ansible reports later that no host matched.
//   - Rescued failures appear only in the closing statistics, as a number for each host.
//     Summary removes as many of the earlier failures.
package jobevent
