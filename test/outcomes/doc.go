// Package outcomes holds what Ensign says about a run against what Ansible says
// about it. It has no code of its own.
//
// The corpus is seven tables of plays: blocks and forgiven failures
// (blocks_test.go), loops (loops_test.go), what happens between tasks
// (flow_test.go), tasks beside others (parallel_test.go), faults (faults_test.go),
// hosts (hosts_test.go), and several plays (playbooks_test.go). Each play runs as
// a role, as a playbook and as a finalizer's content, through internal/ansible/runner,
// with variables that internal/ansible/extravars built; a play of the last two tables has
// no form as a role.
//
// Each also runs with plain ansible-playbook. Ansible's own verdict is its exit
// code and the recap that it prints, read by this package alone; what is stricter
// in Ensign is that a play had a host and none failed or was unreachable. The
// verdict must be that one, the counts must be those of the recap, and verdict,
// reason and a part of the message must be those that the play states by hand. A
// play that fails runs twice and fails with the same message.
//
// A finalizer runs here without a manager: as the watch's own role with the
// finalizer's variables, which make it take other tasks, or as a playbook of its
// own. TestDeletion holds that to the truth: it deletes custom resources under the
// real manager, with some of the plays as finalizers, and what becomes of them is
// what the run without a manager came to.
//
// TestRevealingPlays takes half a minute and is part of `make test`. TestCorpus,
// which prints its table, and TestDeletion take ten minutes and have the build
// tag long. The tests use the testing package, because Ginkgo runs the specs of a
// package one after the other, and here two at a time is worth minutes.
package outcomes
