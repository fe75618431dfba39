//go:build !long

package markers_test

// environments are those that make test has: version of ansible-core → directory.
func environments() map[string]string { return map[string]string{"2.21": ".venv"} }
