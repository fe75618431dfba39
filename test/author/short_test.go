//go:build !long

package author

// alone is set where each kind of content is tried alone, too.
const alone = false
