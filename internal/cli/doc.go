// Package cli is the common part of the programs' command lines: Main, which executes a tree of
// commands and returns the exit code, the flags and the logger of a manager, and the commands that
// both programs have.
//
// Package managercmd has the commands of the manager, which runs in a pod, and package ensigncmd
// those of ensign, which people call. The manager's program links nothing of the author's tools.
// docs/reference-command-line.md lists the flags; a test compares that table with them.
//
// # Gotchas
//
//   - A loopback address in --metrics-bind-address changes the defaults of --metrics-secure
//     and --metrics-require-rbac.
//   - A deprecated spelling of a flag sets the same value as the flag itself: of the two, the
//     last one on the command line counts.
package cli
