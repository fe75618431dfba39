// Package runs holds tests of runs with the real ansible-runner and Ansible of
// .venv: what only they can show. It has no code of its own.
package runs
