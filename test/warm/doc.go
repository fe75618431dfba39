// Package warm shows that a warm run does what a cold one does, with the real
// ansible-runner and Ansible of .venv: plays are run both ways, and their events,
// results, outcomes and files are compared (plays_test.go). And it shows what becomes
// of runs whose servers die, and of servers whose manager dies. It has no code of its
// own.
package warm
