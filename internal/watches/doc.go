// Package watches reads watches.yaml, which names the kinds that an operator
// reconciles and the Ansible content for each. docs/reference-watches.md
// describes the file.
//
// Start with Load in watches.go. It reads the file (file.go), parses each entry
// (entry.go, values.go, references.go) and finds its role or playbook on disk
// (content.go). Each kind of content declares its own fields, defaults, annotations and
// checks (kinds.go, ansiblefields.go, chartfields.go). The parser is strict: an unknown field, a wrong type, a missing
// role or playbook, and an invalid selector are faults. Load returns all faults of
// the file at once, each with its line.
//
// The package does not know flags and does not apply their defaults. It does not
// read playbooks or roles, and it contacts nothing.
//
// # Gotchas
//
//   - ${VAR} in a value is replaced from the environment after the YAML is parsed, in
//     scalar values and never in keys. So an environment variable cannot add structure.
//   - The type of a value without quotes is resolved again after the replacement:
//     port: ${PORT} is a number if PORT holds one.
//   - All fields of a Watch are in its digest, so that a new field runs each CR once after an
//     upgrade. A field that cannot change the result of a run has the tag json:"-".
package watches
