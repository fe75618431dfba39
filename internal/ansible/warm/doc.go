// Package warm keeps a server that has imported Ansible, and starts runs as forks of it: what a
// run spends most of its time on is done once.
//
// The server is in Python (server/), which is part of this program. A Server starts it,
// supervises it, starts another one when it ends or is outdated, and hands runs over to it (fork.go).
// The server refuses what it is not certain to do as a new interpreter does, and the run is
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
//   - Every page that a fork writes to costs it 3 µs and 4 KiB. So what the server has is
//     immortal (immortal.py). What would save less than a tenth of a run and needs the insides of
//     the interpreter or the C library is left alone: functions that runs call laid together,
//     holes of malloc filled, huge pages, docstrings stripped.
//   - Each mechanism is bound to what it needs of Ansible by itself (bound.py), and a server tries
//     all of them in a fork before it serves (trial.py, 0.2 s). A run that has begun as a fork
//     can't become cold, so a mechanism that breaks would fail each run.
//   - A server that is killed takes its runs along, because nobody else can tell how they end. So
//     forks are the first that the kernel ends when memory runs out.
//   - Files that were imported are looked at once a second at most (stamps.py, 8 ms).
package warm
