// Package outcomes holds what Ensign says about a run against what Ansible says
// about it. It has no code of its own.
//
// The corpus is testdata/plays, a directory for each theme: blocks and forgiven failures
// (blocks), loops (loops), what happens between tasks (flow), tasks beside others
// (parallel), faults (faults), hosts (hosts), and several plays (playbooks). A file is
// one play with what is expected of it (play_test.go). Each play runs as
// a role, as a playbook and as a finalizer's content, through internal/ansible/runner,
// with variables that internal/ansible/extravars built; a play of the last two themes has
// no form as a role.
//
// Each also runs with plain ansible-playbook. Ansible's own verdict is its exit
// code and the recap that it prints, read by this package alone; what is stricter
// in Ensign is that a play had a host and none failed. The
// verdict must be that one, the counts must be those of the recap, and verdict,
// reason and a part of the message must be those that the play states by hand. A
// play that fails runs twice and fails with the same message.
//
// A finalizer runs here without a manager: as the watch's own role with the
// finalizer's variables, which make it take other tasks, or as a playbook of its
// own. TestDeletion holds that to the truth: it deletes custom resources under the
// real manager, with some of the plays as finalizers, and their result is
// that of the run without a manager.
//
// TestRevealingPlays takes half a minute and is part of `make test`. TestCorpus and
// TestDeletion take ten minutes and have the build tag long. The tests use the testing package, because Ginkgo runs the specs of a
// package one after the other, and here two at a time is worth minutes.
package outcomes
