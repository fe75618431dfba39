package cli

import (
	"fmt"
	"strings"
)

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

// checkQuotes returns an error if the value ends within quotes or with a backslash.
// ansible-runner splits the value as a shell does; with an open quote, each run would fail
// with a traceback.
func checkQuotes(name, value string) error {
	var quote rune
	escaped := false
	for _, c := range value {
		switch {
		case escaped:
			escaped = false
		case c == '\\' && quote != '\'':
			escaped = true
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		}
	}
	if quote != 0 || escaped {
		return fmt.Errorf("%s: quote its value as for a shell: it ends within quotes, or by a backslash", name)
	}
	return nil
}
