// Package cli is the manager's command line: cobra commands whose flags become
// the options of package operator, and the logger that they describe. It holds
// no logic of what it starts.
package cli
