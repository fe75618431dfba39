// Package cli is the manager's command line.
//
// Execute runs the cobra command that the arguments name. newRunCommand defines
// "manager run": it parses the flags (flags.go) into config.Options, makes the logger
// that they describe (logger.go), checks all settings and calls operator.Run.
// docs/reference-command-line.md lists the flags; a test compares that table with them.
//
// # Gotchas
//
//   - A loopback address in --metrics-bind-address changes the defaults of --metrics-secure
//     and --metrics-require-rbac.
//   - A deprecated spelling of a flag sets the same value as the flag itself: of the two, the
//     last one on the command line counts.
package cli
