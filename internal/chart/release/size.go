package release

import "fmt"

const (
	// maxRecord bounds a record once it is unpacked, in bytes. A Secret has 1 MiB at most, which can
	// unpack to 800 MB.
	maxRecord = 32 << 20
	// growth is kept free in the Secret of a new record, in bytes: for its next states, the times of its
	// hooks, and the text of a failure.
	growth = 16 << 10
	// maxValues and maxDepth bound the JSON values of a record and how deep they are nested. Each value
	// can take some hundred bytes once it is decoded, whatever its text has. The largest public charts
	// have some ten thousand values.
	maxValues = 200_000
	maxDepth  = 200
)

// checkShape returns an error if a text of JSON has more values than are decoded.
func checkShape(text []byte) error {
	if exceeds(text, maxValues, maxDepth) {
		return fmt.Errorf("the record of the release has more than %d JSON values, or they are nested more than %d deep. Helm keeps the chart's values and those of the resource in it: make them smaller", maxValues, maxDepth)
	}
	return nil
}

// exceeds reports whether a text of JSON has more values, or deeper ones. It allocates nothing. It may
// return false for invalid JSON: decoding that stops at the first mistake.
func exceeds(text []byte, maxValues, maxDepth int) bool {
	values, depth, quoted := 1, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			values++
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ',':
			values++
		}
		if values > maxValues || depth > maxDepth {
			return true
		}
	}
	return false
}

func tooLarge(size int, limit string) error {
	return fmt.Errorf("the record of the release has %.2f MiB, %s. Helm keeps the chart's files, the values and the manifest in it: leave out what the chart does not need by a .helmignore, or make files and values smaller", float64(size)/(1<<20), limit)
}
