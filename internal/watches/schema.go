package watches

import _ "embed"

//go:embed watches.schema.json
var schemaText []byte

// Schema returns the JSON Schema (draft 7) of watches.yaml, for editors. Load refuses all that it
// refuses, and faults that it can't express, such as a role that does not exist, a kind that is
// watched twice, or a value that only the environment has.
func Schema() []byte { return append([]byte(nil), schemaText...) }
