// Package extravars turns a custom resource into the variables of its run, and
// the variables into the bytes that Ansible reads as env/extravars.
//
// What a custom resource says is data, never code: Encode marks every string
// that came from it as untrusted, so that Ansible does not template it, while
// the variables of watches.yaml stay templates. Build refuses a spec that
// would steer Ansible itself or that no run could read, and names everything
// that is wrong with it at once. A finalizer's run is never refused: what
// offends is left out of its variables instead.
//
// The package is pure. It does not read or write files, start processes, know
// watches.yaml, or decide what becomes of an object whose spec is refused.
//
// # Gotchas
//
//   - TAB and LF stand before the JSON. Where Ansible's JSON decoder gives up, Ansible reads
//     the file as YAML, in which the marks of untrusted strings are ordinary maps. A TAB is
//     white space to JSON and an error to YAML. The LF keeps values out of the text of the
//     error.
//   - vars_prompt, and files that content writes and reads, make text trusted again. No
//     encoding prevents that (docs/security.md).
package extravars
