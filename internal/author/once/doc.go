// Package once runs the content of a watch for one CR, at a terminal and without a manager.
//
// Start with Run in once.go. It reads the CR from a file or from the cluster (read.go), runs the
// content through the same Reconciler, runner and API proxy as a manager (LocalRunner), and shows each
// task as it ends (screen.go, diff.go). With Options.Watch it runs again when a file changes
// (files.go). Variables (vars.go) prints the variables for Ansible, or the
// values of a chart, and runs nothing.
//
// The package writes no finalizer, and a status only where Options.Status asks for it.
//
// # Gotchas
//
//   - A CR from a file has no UID of the API server unless the cluster has the CR too. An
//     owner reference with another UID would make the garbage collector delete the child.
package once
