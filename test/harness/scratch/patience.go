package scratch

import (
	"testing"
	"time"
)

// Patience ends tests that hang. It is no expectation: nothing that a test waits for
// takes a tenth of it, on a machine that is busy with much else. A test shows
// that something is quick by what did not happen until then, never by a clock.
const Patience = 10 * time.Minute

// Eventually waits until the condition holds.
func Eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(Patience); !holds(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("waited in vain for %s", what)
		}
	}
}
