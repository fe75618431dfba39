// Package warm keeps a server that has imported Ansible, and starts runs as forks of it: what a
// run spends most of its time on is done once.
//
// The server is in Python (server/), which is part of this program. A Server starts it, looks
// after it, starts another one when it ends or is outdated, and hands runs over to it (fork.go).
// The server refuses what it is not certain to do as a new interpreter does, and the run is
// started in a new interpreter: before anything of it has run, and never after.
//
// The processes of a run are not this package's business: forks have the marks of their run, and
// are found and ended as those of a cold run are.
//
// # Gotchas
//
//   - What a fork saves beside the imports, in CPU of a run of three k8s tasks: YAML of Ansible's
//     own that is parsed once (parsed.py, 0.13 s), plugins' files that are executed once
//     (plugins.py, 7 ms, and 2 ms in each worker whose task has a filter), templates of the content
//     that are compiled once (templates.py, 0.5 ms each), and modules in forks of the worker
//     instead of in new interpreters (modules.py, apart.py; 0.3 s a module).
//   - Every page that a fork writes to costs it 3 µs and 4 KiB. So what the server has is
//     immortal (immortal.py), the holes in its memory are filled (heap.py; from 22 MiB to 9), and
//     the functions that runs call, to whose code Python writes, lie together (hot.py; from 1,040
//     pages to 380 in a run, and from 500 to 180 in each worker and module). Which functions that
//     is, the first three runs show. Python 3.13 does not specialize calls of what was moved.
//   - Each fork copies the server's page table, and takes it apart at its end: 9 ms for 100 MiB, and
//     a run of three tasks has seven forks. So what the server has is put into huge pages (heap.py),
//     and lacks the docstrings of the largest package (terse.py, 11 MiB).
//   - A server that is killed takes its runs along, because nobody else can tell how they end. So
//     forks are the first that the kernel ends when memory runs out.
//   - Files that were imported are looked at once a second at most (stamps.py, 8 ms).
package warm
