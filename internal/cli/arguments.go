package cli

import (
	"fmt"
	"strings"
)

// unwrapped takes off the quotes that a value as a whole stands in: written in a list of
// YAML, --ansible-args='--tags a' meets no shell that would do it.
func unwrapped(value string) string {
	for _, quote := range []string{"'", `"`} {
		inner, begins := strings.CutPrefix(value, quote)
		inner, ends := strings.CutSuffix(inner, quote)
		if begins && ends && !strings.Contains(inner, quote) {
			return inner
		}
	}
	return value
}

// closed refuses a value in which a quote is left open. ansible-runner, which splits the
// value as a shell does, would say so in a traceback, run by run.
func closed(name, value string) error {
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
