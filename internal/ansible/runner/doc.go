// Package runner runs Ansible content once, as a child process, and reports what
// it does while it does it.
//
// Runner.Run lays out a private directory (package rundir), builds
// ansible-runner's command line and environment (command.go, pure functions),
// starts it, hands every job event to the caller in order (package jobevent) and
// comes back when no process of the run is left. A run ends early with its
// context, its timeout, and when nothing is heard of it for too long.
//
// A run's processes are a tree that does not hold together by itself, and package
// proctree finds and ends it. After a run that ended by itself, what is left of it
// is ended too: asynchronous tasks do not outlive their run. What a killed manager
// left is ended by the next manager of the run directory (TakeOver).
//
// The package does not know custom resources, write status, retry, or decide
// whether a run may start. It writes to a logger only what it can report in no
// other way.
//
// # Gotchas
//
//   - TakeOver locks, hunts, clears, in this order. The lock comes first, so that two managers
//     never end each other's runs. Then it ends what a killed manager left, by
//     ENSIGN_RUN_ROOT. Only then do that manager's files go.
//   - JOB_ID marks a run's processes. It is no secret, and nothing is believed because of it.
package runner
