// Package stub stands in for a Python environment with Ansible, so that a manager
// starts in a moment and its runs do what a test says.
//
//	ENV/bin/{ansible-runner,ansible-playbook,python3}   one small program (program/)
//	DIR/journal.jsonl                                   what every run did
//	DIR/stage.sock                                      where runs ask to go on
//	DIR/live/UID                                        locked by the live run of a CR
//
// Build makes ENV. The manager finds it by VIRTUAL_ENV, and the runs find DIR by
// ENSIGN_STUB_DIR, which their environment has from the manager's.
//
// As with the real one, ansible-runner starts ansible-playbook in a session of
// its own, ends it on TERM, and leaves it alive when it is killed. What a play
// does stands in the spec of its custom resource (Script). Each run writes a
// record when it starts and before it reports its stats; a second run for a
// custom resource that has a live one says so. Where DIR has a Stage, a run tells
// it of every phase and waits until it may go on.
//
// With the real Ansible the same play runs as a task (Task): it keeps the same
// journal, and tells of MidTask only.
package stub
