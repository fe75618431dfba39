//go:build long

package safevars

import "testing"

// What `make test-all` has time for.
const (
	defaultDocuments = 30_000
	brokenDocuments  = 3000
	brokenRuns       = 30
	everyPayload     = 1
	everyUse         = 1
)

func cores(t *testing.T) []core {
	t.Helper()
	return []core{
		coreAt(t, ".dev/python/2.19", "2.19"),
		coreAt(t, ".dev/python/2.20", "2.20"),
		coreAt(t, ".venv", "2.21"),
	}
}
