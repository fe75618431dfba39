//go:build !long

package warm

const (
	everyPlay   = false
	randomPlays = 2
)
