// Package sanitize makes text safe to be shown.
package sanitize

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var terminalColour = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Text returns text that is safe for a terminal or a log: without terminal colours,
// with line feeds as line ends, and with Go escapes for all other characters that are
// not graphic (controls, escapes, changes of the writing direction). It keeps tabs and
// line feeds. The result is valid UTF-8.
func Text(text string) string {
	if !strings.ContainsFunc(text, isHidden) && utf8.ValidString(text) {
		return text
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = terminalColour.ReplaceAllLiteralString(text, "")
	var b strings.Builder
	for _, r := range text {
		switch {
		case !isHidden(r):
			b.WriteRune(r)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

func isHidden(r rune) bool {
	return r != '\n' && r != '\t' && !unicode.IsGraphic(r) || r == '\u2028' || r == '\u2029'
}
