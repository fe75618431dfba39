// Package floods runs the real manager with runs that print more than anybody
// would: lines of 100 MB, a gigabyte, millions of lines, bytes that are no text.
// The manager's memory, its log, the run directory and the status have to stay
// within bounds, and the outcome has to be right.
//
// Most floods come from a scripted ansible-runner, which is this test's binary
// under another name (play_test.go); those that pass through Ansible come from the
// real one.
//
// In `make test`: 100 MB at a time. With the build tag "long", `make test-all`: a
// gigabyte, 20 million lines, and 50 runs that print at once.
package floods
