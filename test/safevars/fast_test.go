//go:build !long

package safevars

// What `make test` has time for.
const (
	defaultDocuments = 1500 // read by Ansible
	brokenDocuments  = 500  // refused by Ansible
	brokenRuns       = 3    // refused by ansible-runner
	everyPayload     = 16   // of the role that reads every place: one in so many
	everyUse         = 8    // one in so many
)
