//go:build !long

package warm

const (
	everyPlay   = false
	randomPlays = 2
)

// environments are those that these tests have: version of ansible-core → directory.
func environments() map[string]string {
	return map[string]string{"2.21": ".venv"}
}
