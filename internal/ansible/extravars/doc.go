// Package extravars turns a custom resource into the variables of its run, and
// the variables into the bytes that Ansible reads as env/extravars.
//
// The text of a custom resource is data, never code. Encode tags every string of
// the custom resource as untrusted, so that Ansible does not evaluate it as a
// template. The variables of watches.yaml stay templates. Build refuses a spec that
// would change the settings of Ansible itself or that Ansible could not read, and
// its error names all problems at once. Build never refuses a finalizer's run: it
// leaves the fields with problems out of the variables instead.
//
// The package is pure. It does not read or write files, start processes, know
// watches.yaml, or decide what happens to an object whose spec is refused.
//
// # Gotchas
//
//   - Encode writes a TAB and an LF before the JSON. If Ansible's JSON decoder fails, Ansible
//     reads the file again as YAML, and in YAML the tags of untrusted strings are ordinary
//     maps. A TAB is white space in JSON and an error in YAML. The LF keeps values out of the
//     text of that error.
//   - vars_prompt, and files that content writes and reads, make text trusted again. No
//     encoding prevents that (docs/security.md).
package extravars
