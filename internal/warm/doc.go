// Package warm keeps servers that have imported Ansible, of which runs and modules
// are forks: what a run spends most of its time on is done once.
//
// A Pool has one set of servers for each environment that runs have, without what
// differs from run to run (key.go): one server for runs, which are ansible-runner with the
// playbook in the same process, and one for modules. It starts them, looks after them, starts
// them again, and ends the set that was used least recently (pool.go, set.go,
// server.go). The servers are in Python (server/), which is part of this program.
//
// Launch gives the program that stands in for Python, cmd/warm-exec. It and
// the servers make sure that a warm run does what a cold one does: what they can't
// be sure of, they refuse, and the real program is started. This package only counts
// and tells it.
//
// The processes of a run are not its business: forks have the marks of their run,
// and are found and ended as those of a cold run are.
package warm
