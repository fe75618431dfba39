package scratch

import (
	"testing"
	"time"
)

// WaitTimeout ends tests that hang. Nothing that a test waits for takes a tenth of it, also on a
// busy machine. A test never shows by a clock that something is quick.
const WaitTimeout = 10 * time.Minute

// Eventually waits until the condition holds.
func Eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(WaitTimeout); !holds(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("waited in vain for %s", what)
		}
	}
}
