// Package runner runs Ansible content once, as a child process, and reports what
// it does while it does it.
//
// Runner.Run lays out a private directory (package rundir), builds
// ansible-runner's command line and environment (command.go, pure functions),
// starts it, hands every job event to the caller in order (package jobevent) and
// comes back when no process of the run is left. What ends a run early is its
// context and nothing else.
//
// A run's processes are a tree that does not hold together by itself:
// ansible-playbook leaves ansible-runner's process group and session, and a
// process that a task put into the background loses its parent. They are found
// by descent and by the nonce in their environment (tree.go). A process that
// has both lost its parent and got another environment, as under sudo, is not
// found. After a run that ended by itself, what is left of it is ended too:
// asynchronous tasks do not outlive their run.
//
// The package does not know custom resources, write status, retry, or decide
// whether a run may start. It writes to a logger only what it can report in no
// other way.
package runner
