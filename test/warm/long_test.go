//go:build long

package warm

const (
	everyPlay   = true
	randomPlays = 60
)

// environments are those that these tests have: version of ansible-core → directory.
func environments() map[string]string {
	return map[string]string{"2.19": ".dev/python/2.19", "2.20": ".dev/python/2.20", "2.21": ".venv"}
}
