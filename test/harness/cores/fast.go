//go:build !long

package cores

// dirs are the environments, by the series of ansible-core.
func dirs() map[string]string {
	return map[string]string{newest: ".venv"}
}
