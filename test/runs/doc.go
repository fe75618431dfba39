// Package runs holds tests of runs with the real ansible-runner and Ansible of .venv, one at a
// time and without a manager: what only they can show. It has no code of its own.
//
// Below it are the suites about what runs meet, and what they share:
//
//	bench     a runner with a run directory, content and a server for warm runs
//	disk      no space, inodes or open files
//	floods    far too much output
//	markers   text that looks like a job event
//	outcomes  verdicts, held against Ansible's own
//	secrets   canaries in all that holds a secret
//	warm      runs by a server, held against cold ones
package runs
