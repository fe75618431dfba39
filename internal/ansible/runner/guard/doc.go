// Package guard ends runs whose manager can't do it any more.
//
// A guard is a small process beside the manager: the same program, started again
// with the hidden command named Command. It holds the reading end of a pipe whose
// other end only the manager has. The end of that pipe says that the manager is
// gone, however it went, and the guard ends what is left of its runs (package
// proctree) and then itself. Orders come through the pipe too: a deadline after
// which no run may go on, for a manager that is frozen while its lease runs out.
//
// The guard shares nothing else with the manager: it has its own session, ignores
// the signals that end programs politely, and holds no other file. Only SIGKILL
// ends it; then the manager starts another one. When both are killed at once, what
// they leave is ended by the next manager of the run directory.
//
// The package does not know leases, and does not decide when a run may start.
//
// # Gotchas
//
//   - The guard looks for ENSIGN_MANAGER, which names one manager process, and not for
//     ENSIGN_RUN_ROOT: the guard may still be at work when the next manager of the run
//     directory has begun.
package guard
