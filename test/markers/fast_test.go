//go:build !long

package markers_test

import "strings"

// environments are those that make test has: version of ansible-core → directory.
func environments() map[string]string { return map[string]string{"2.21": ".venv"} }

// texts are all payloads in one, which costs a run for each of them less.
func texts(payloads []string) []string { return []string{strings.Join(payloads, " ")} }

// someEnds is of how many places make test has a run that ends there.
const someEnds = 2

// slow places are for long tests.
func slow() []place { return nil }
