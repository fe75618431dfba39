// Package watches reads watches.yaml, the one file that says which kinds an
// operator reconciles and with which Ansible content.
//
// Reading is strict: an unknown field, a wrong type, a role or playbook that
// is not there, a selector that does not parse is a fault, and Load reports
// every fault of the file at once with its line.
//
// ${VAR} in a value is replaced from the environment where VAR is set. That
// happens after the YAML is parsed, to single values and never to keys, so no
// environment can add structure. A value that was written without quotes is
// typed anew: port: ${PORT} gives a number where PORT holds one.
//
// The package does not know flags, does not apply their defaults, does not
// read what a playbook or role says, and contacts nothing.
package watches
