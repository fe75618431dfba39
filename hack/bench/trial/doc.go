// Package trial runs the same roles for the same CRs by ansible-runner alone (plain.go)
// and by whole managers, whose runs are cold or warm (site.go, change.go), and takes
// the times of what happens (record.go) and the processor time and memory that it
// costs (usage.go).
//
// The package does not judge what it measures.
package trial
