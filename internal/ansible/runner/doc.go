// Package runner executes Ansible content once, as a child process, and reports its job
// events while it runs.
//
// Runner.Run
//
//   - lays out a private directory (package rundir),
//   - builds the command line and the environment (command.go, pure functions),
//   - starts the command: Python with ensign_run.py (package program), or a program that the
//     Launcher returns for a warm run,
//   - passes every job event to the caller, in order (package jobevent),
//   - returns after the last process of the run has ended.
//
// A run ends early with its context, after its timeout, and after its idle timeout.
//
// Package proctree finds and ends the processes of a run, which leave their process group
// and session. After a run that ended by itself, it ends the processes that are left:
// asynchronous tasks do not outlive their run. Package process starts the
// program and ends its processes; its TakeOver ends those that a killed manager left in the
// run directory.
//
// The package does not know custom resources, write status, retry, or decide whether a run may
// start. It logs only errors that it cannot report in any other way.
//
// # Gotchas
//
//   - The order in TakeOver matters. First it locks the run directory, so that two managers
//     never end each other's runs. Then it ends the processes that a killed manager left,
//     which it finds by ENSIGN_RUN_ROOT. It removes that manager's files last.
//   - JOB_ID identifies the processes of a run. It is not a secret, and nothing relies on its
//     being one.
package runner
