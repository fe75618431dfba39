//go:build !long

package markers_test

import "strings"

// texts are all payloads in one, which costs a run for each of them less.
func texts(payloads []string) []string { return []string{strings.Join(payloads, " ")} }

// someEnds is of how many places make test has a run that ends there.
const someEnds = 2

// slow places are for long tests.
func slow() []place { return nil }
