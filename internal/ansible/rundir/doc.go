// Package rundir keeps one private directory per custom resource for the files
// of its runs.
//
//	ROOT/                          0700, locked by one process
//	  .tmp/                        temporary files of all runs
//	  .program/, .warm/            what packages runner and warm put there
//	  <uid>/                       the CR's, by metadata.uid
//	    run/                       what ansible-runner works in; made before each
//	                               run and removed after it, whatever is in it
//	    artifacts/<time>-<run id>/ what is kept of a run, as many as asked for
//
// Everything that a run needs or that ansible-runner and Ansible write lies in
// run/: variables, kubeconfig, inventory, Ansible's temporary files, facts, and
// ansible-runner's own artifacts, which hold the whole environment in clear,
// gathered facts and unmasked results of modules. None of it outlives the run.
// An artifact is what the caller chooses to write with Dir.Create, and nothing
// else; so what it must not hold can't be left behind by accident.
//
// Directories are 0700 and files 0600 whatever the umask is. What ansible-runner
// writes keeps the modes that it chose: it lies below a 0700 directory, and the
// umask, which belongs to the whole process, is left alone.
//
// No name that comes from outside becomes a path before it has been checked, no
// symbolic link below ROOT is followed. Every directory in ROOT with a name that a
// UID may have counts as a CR's, and is removed when no CR has that UID; so a ROOT
// that was somebody else's is refused. A role runs with the manager's user, so this
// guards against accidents and against what a CR says, not against hostile roles.
//
// Artifacts are limited in bytes: one while it is written, and when its run has
// ended those of its CR and all together (limit.go). What a run writes in run/ is not.
//
// The package does not know Kubernetes, start processes, or read what is in the
// files.
//
// # Gotchas
//
//   - A stray file args or env/cmdline in run/ would replace or extend Ansible's command, so
//     run/ is made anew for each run.
//   - A missing env/extravars silently means no variables at all, so the package looks for the
//     file before the start.
//   - TMPDIR is at most 75 bytes long, or left alone: Ansible puts sockets below it, and the
//     path of a socket ends at 107 bytes. Runs share it, because Python's client of Kubernetes
//     caches discovery there.
package rundir
