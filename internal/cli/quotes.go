package cli

import "strings"

// trimQuotes removes quotes around the whole value. The element --ansible-args='--tags a'
// of a YAML list has them, because no shell removes them there.
func trimQuotes(value string) string {
	for _, quote := range []string{"'", `"`} {
		inner, begins := strings.CutPrefix(value, quote)
		inner, ends := strings.CutSuffix(inner, quote)
		if begins && ends && !strings.Contains(inner, quote) {
			return inner
		}
	}
	return value
}
