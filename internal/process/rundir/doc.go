// Package rundir keeps one private directory per custom resource for the files
// of its runs.
//
//	ROOT/                          0700, locked by one process
//	  .tmp/                        temporary files of all runs; a symbolic link where
//	                               they are elsewhere
//	  .program/, .warm/            files of the packages runner and warm
//	  <uid>/                       of a CR, by metadata.uid
//	    run/                       what ansible-runner works in; made before each
//	                               run and removed after it
//	    artifacts/<time>-<run id>/ what is kept of a run
//
// run/ holds everything that a run needs and everything that ansible-runner and Ansible
// write: variables, kubeconfig, inventory, Ansible's temporary files, facts, and
// ansible-runner's own artifacts, which hold the whole environment, gathered facts and
// unmasked results of modules. All of it is removed after the run. An artifact holds only
// files that the caller wrote with Dir.Create, so no secret is left behind by accident.
//
// Directories are 0700 and files 0600 whatever the umask is. Files that ansible-runner
// writes keep the modes that it chose: they are below a 0700 directory, and the umask
// belongs to the whole process.
//
// The package checks every name that comes from outside before it becomes a path, and
// follows no symbolic link below ROOT. Every directory in ROOT whose name may be a UID
// counts as the directory of a CR, and is removed if no CR has that UID. Therefore Open
// refuses a ROOT with directories that no manager made. Roles run as the manager's user,
// so all this protects against accidents and against the content of CRs, but not against
// malicious roles.
//
// The size of artifacts is limited (limit.go): of a single one while it is written, and
// after each run of all artifacts of its CR and of all CRs. The size of run/ is not limited.
//
// The package does not know Kubernetes, start processes, or read the files of runs.
//
// # Gotchas
//
//   - A file args or env/cmdline in run/ would replace or extend Ansible's command, so each
//     run gets a new run/.
//   - If env/extravars is missing, a run silently has no variables, so Prepare checks the file.
//   - TMPDIR is at most 75 bytes long: Ansible puts sockets below it, and a socket's path
//     may have 107 bytes. Runs share TMPDIR, because Python's client of Kubernetes caches
//     discovery there, which it then trusts: nobody else may write there. Where ROOT's path
//     is too long, TMPDIR is a directory with a random name in the system's (makeTemp).
package rundir
