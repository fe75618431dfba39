//go:build long

package safevars

// What `make test-all` has time for.
const (
	defaultDocuments = 30_000
	brokenDocuments  = 3000
	brokenRuns       = 30
	everyPayload     = 1
	everyUse         = 1
)
