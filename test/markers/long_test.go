//go:build long

package markers_test

// environments are all that are supported: version of ansible-core → directory.
func environments() map[string]string {
	return map[string]string{"2.19": ".dev/python/2.19", "2.20": ".dev/python/2.20", "2.21": ".venv"}
}
