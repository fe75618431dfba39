// Package disk holds tests of what happens when the machine runs out of disk,
// inodes or open files. The file systems, of some pages, and the limits of the
// manager's process are real, and so is ansible-runner where its own behaviour
// counts. They need bin/manager, .venv and bin/controlplane, which `make test`
// provides, and the right to mount, which they get in a namespace of their own.
// Further runs that fill the disk have the build tag "long".
package disk
