//go:build long

package cores

// dirs are the environments, by the series of ansible-core.
func dirs() map[string]string {
	return map[string]string{"2.19": ".dev/python/2.19", "2.20": ".dev/python/2.20", newest: ".venv"}
}
