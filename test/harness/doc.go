// Package harness runs bin/manager as a process of its own for suites that watch
// it from outside: its log, its processes and what it leaves in the file system.
// It knows nothing of Ginkgo, so that programs can use it too.
//
// The package does not start control planes or judge what a manager does.
package harness
