// Package jobs holds tests of runs in Jobs (executor: job): managers and agents are processes, the
// control plane is real, and a node of the test runs the pods of Jobs (test/harness/pods).
//
// Where a test needs many runs, it plays Ansible itself (play_test.go): such a run leaves signs of
// life in a journal, and writes to the API through its agent and the manager's proxy.
//
// Fault plans (faults_test.go) are those of test/faults at the writes that runs in Jobs have. `make
// job-mutants` builds each patch in mutants, which the specs have to notice.
package jobs
