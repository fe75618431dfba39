// Package warm keeps a server that has imported Ansible, and starts runs as forks of it. The part
// that takes most of a run's time is done once.
//
// The server is in Python (server/), which is part of this program. A Server starts it, supervises
// it, starts another one when it ends or is outdated, and hands runs over to it (fork.go). The
// server refuses a run if it is not certain to do the same as a new interpreter. Then the run is
// started in a new interpreter: before anything of it has run, and never after.
//
// The processes of a run are not this package's business: forks have the environment of their run, and
// are found and ended as those of a cold run are.
//
// # Gotchas
//
//   - A fork saves more than the imports, in CPU of a run of three k8s tasks. Ansible's own YAML
//     is parsed once (parsed.py, 0.13 s). Templates of the content are compiled once
//     (templates.py, 0.5 ms each). Modules run in forks of the worker instead of in new
//     interpreters (modules.py, apart.py; 0.3 s a module).
//   - Every page that a fork writes to costs it 3 µs and 4 KiB. So the server's objects are
//     immortal (immortal.py). Measures that would save less than a tenth of a run and need the
//     insides of the interpreter or the C library are not taken: functions that runs call laid
//     together, holes of malloc filled, huge pages, docstrings stripped.
//   - Each mechanism tests by itself (bound.py) that the parts of Ansible are there that it needs,
//     and a server tries all of them in a fork before it serves (trial.py, 0.2 s). A run that has
//     begun as a fork can't become cold, so a mechanism that breaks would fail each run.
//   - A server that is killed takes its runs along, because nobody else can tell how they end. So
//     forks are the first that the kernel ends when memory runs out.
//   - Files that were imported are looked at once a second at most (stamps.py, 8 ms).
package warm
