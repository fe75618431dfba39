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
//
// # Gotchas
//
//   - What forks of runs save beside imports, in CPU of a run of three k8s tasks: payloads
//     that the server has built and whose files are as they were (payloads.py, 0.15 s), YAML
//     parsed once (parsed.py, 0.13 s), modules without files (25 ms a task), a task's
//     directory without shells (directories.py, 5 ms a task), Ansible's own plugins executed
//     ahead where their source shows that the time does not matter (plugins.py, 9 ms), results
//     waited for instead of polled (results.py, 10 ms).
//   - What forks of modules save, of 0.35 s of CPU for one of k8s, which then takes 0.04:
//     sources compiled once (codes.py), of Ansible's script only the call (script.py),
//     Ansible's library for modules imported ahead where the payload has the same bytes
//     (library.py) with its effects on other modules undone and done where they belong
//     (effects.py), and the kubeconfig read by its form (kubeconfig.py, 2 ms).
//   - Every page that a fork writes to costs it 3 µs and 4 KiB. So what servers have is
//     immortal (immortal.py), and the holes in their memory are filled (holes.py; from 22 MiB
//     to 9).
//   - A stand-in costs 3 ms, most of it the start of Go. It has one place for goroutines, so
//     that Go's runtime rests while it waits.
//   - Imported files are not looked at while inotify reports nothing (watched.py, 8 ms a
//     fork). inotify does not report a write through a memory mapping.
//   - A role may have a plugin of the name of one of Ansible's, so plugins that were executed
//     ahead are given out by name and file.
//   - Left out: modules without a shell, because the shell sets PWD (2 ms); the library of
//     ansible-core 2.19, which changes more; the libraries of other collections, whose effects
//     nobody has looked at; Ansible's wrapper, which unpacks each payload (8 ms).
package warm
