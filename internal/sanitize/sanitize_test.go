package sanitize_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/ensign-operator/ensign/internal/sanitize"
)

func TestWhatIsMadeVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\n":                 "plain\ttext\n",
		"Größe 大小":                      "Größe 大小",
		"\x1b[0;31mred\x1b[0m":          "red",
		"two\r\nlines":                  "two\nlines",
		"over\rwritten":                 `over\x0dwritten`,
		"\x1b]0;title\x07":              `\x1b]0;title\x07`,
		"\x1b[2Jclear":                  `\x1b[2Jclear`,
		"nothing\x00":                   `nothing\x00`,
		"C1 \u009b31m":                  `C1 \u009b31m`,
		"turned \u202etxt.exe":          `turned \u202etxt.exe`,
		"lines of Unicode\u2028\u2029":  `lines of Unicode\u2028\u2029`,
		"tags \U000e0041":               `tags \U000e0041`,
		"no text \xff\xfe":              "no text \uFFFD\uFFFD",
		"colours of \x1b[\x1b[31m31mit": `colours of \x1b[31mit`,
	} {
		if got := sanitize.Text(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// FuzzText checks that no text controls a terminal.
func FuzzText(f *testing.F) {
	f.Add("\x1b[0;31mred\x1b[0m\r\n\x1b]0;title\x07")
	f.Fuzz(func(t *testing.T, text string) {
		got := sanitize.Text(text)
		if !presentable(got) {
			t.Errorf("%q is shown as %q", text, got)
		}
		if presentable(text) && !strings.ContainsRune(text, '\uFEFF') && printable(text) && got != text {
			t.Errorf("%q needs no change and became %q", text, got)
		}
		if again := sanitize.Text(got); again != got {
			t.Errorf("%q becomes %q", got, again)
		}
	})
}

// presentable reports whether terminals and logs show the text as it is.
func presentable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029')
	})
}

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) })
}
