// Package runs holds tests of runs with the real ansible-runner and Ansible of
// .venv: what only they can show. It has no code of its own.
//
// With the build tag "long": each kind of task under a manager that is killed, one
// that is frozen past its lease, and the idle timeout.
package runs
