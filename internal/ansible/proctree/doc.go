// Package proctree knows which processes belong to runs, and ends them.
//
// A run's processes do not hold together by themselves: Ansible's workers leave the
// process group and session of the run's first process, and what a task puts into
// the background loses its parent. So they are found in two ways, and a process that
// one of them finds belongs to the run (processes.go):
//
//   - by descent from one that belongs to it;
//   - by a mark in the environment that it was started with: a number of the run,
//     a name of this manager process, and the run directory, which a successor
//     has too (owner.go).
//
// A process is missed that has both lost its parent and got another environment, as
// a daemon started under env -i or sudo has, or has written its title over it, as
// those of nginx and PostgreSQL do. It lives until its container ends.
//
// TERM comes first, KILL for what is there later, and each signal goes to a
// process by its number and the time of its start, so that another one that got
// the number since is never hit. A process that the kernel holds in a system call
// can't be ended by anybody; it is given up after a while, with its KILL pending.
//
// The package knows nothing of Ansible.
//
// # Gotchas
//
//   - Two Owners in one process would collect each other's exit codes; Owner.reap therefore
//     looks at its own children only. Use one Runner in a process.
//   - A program whose first thread has ended looks like a zombie while its other threads work:
//     the package counts threads.
//   - A process table that can't be read is not empty: with no descriptor left, the package
//     waits for one.
package proctree
