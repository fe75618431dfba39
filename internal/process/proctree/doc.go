// Package proctree finds the processes of runs and ends them.
//
// A run's processes do not stay in one group: Ansible's workers leave the process group and
// the session of the run's first process, and a process that a task puts into the background
// loses its parent. So the package finds the processes of a run in two ways (processes.go):
//
//   - by descent from a process of the run;
//   - by the environment with which a process was started: a number of the run, a
//     name of this manager process, and the run directory, which a successor of the manager
//     knows too (reaper.go).
//
// The package does not find a process that has lost its parent and also has another
// environment (a daemon started under env -i or sudo) or has overwritten its environment
// with its title (nginx, PostgreSQL). Such a process lives until its container ends.
//
// To end processes, the package sends TERM, and later KILL to those that are left. It
// identifies a process by its pid and start time, so that a signal never reaches another
// process that got the same pid. Nobody can end a process in an uninterruptible system
// call; the package gives up after a while, with the KILL pending.
//
// The package knows nothing of Ansible.
//
// # Gotchas
//
//   - A manager process must have only one Runner. Otherwise one could take the exit status of
//     the other's children; reap spares only the children that it knows.
//   - A program whose first thread has ended looks like a zombie while its other threads run:
//     the package counts threads.
//   - A process table that cannot be read is not empty: if no descriptor is free, the package
//     waits for one.
package proctree
