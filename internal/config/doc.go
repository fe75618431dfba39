// Package config holds the settings of a manager.
//
// Options has a field for each flag and the environment variables. Options.Check
// finds everything that is wrong with them, before the manager contacts anything.
// The package also reads the memory limit of the machine and derives from it how many
// runs may run at once (capacity.go).
//
// It does not parse the command line (package cli does), does not look at Ansible
// content, and does not contact the API server.
//
// # Gotchas
//
//   - The memory limit of a container is that of its cgroup or of any cgroup above it. With
//     version 1 of cgroups, each kind of limit has a hierarchy of its own.
package config
