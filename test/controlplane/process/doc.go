// Package process owns a group of child processes: their output goes to log
// files, an exit that nobody asked for is reported with the last lines of the
// log, and none of them outlives its owner, however that ends.
//
// It does not know what it runs, restart anything, or decide when a child is
// ready.
package process
