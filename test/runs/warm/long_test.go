//go:build long

package warm

const (
	everyPlay   = true
	randomPlays = 60
)
