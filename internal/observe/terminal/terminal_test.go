package terminal

import (
	"bytes"
	"os"
	"testing"
)

func TestPaint(t *testing.T) {
	for name, test := range map[string]struct {
		on         bool
		color      Color
		text, want string
	}{
		"each line has its own colour":       {true, Red, "a\nb", "\x1b[31ma\x1b[0m\n\x1b[31mb\x1b[0m"},
		"no colour where they are off":       {false, Red, "a", "a"},
		"the terminal's own colour":          {true, Plain, "a", "a"},
		"nothing is not painted":             {true, Red, "", ""},
		"the text's own controls are shown":  {true, Plain, "a\x1b]0;title\a", `a\x1b]0;title\x07`},
		"controls are shown without colours": {false, Faint, "\x1b[2Ja", `\x1b[2Ja`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Palette{test.on}).Paint(test.color, test.text); got != test.want {
				t.Errorf("want %q, got %q", test.want, got)
			}
		})
	}
}

func TestWhatIsNoTerminalHasNoColours(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if Is(file) || Is(&bytes.Buffer{}) || For(file).On {
		t.Error("a file or a buffer counts as a terminal")
	}
}

func TestIndent(t *testing.T) {
	if got := Indent("  ", "a\nb\n"); got != "  a\n  b" {
		t.Errorf("got %q", got)
	}
	if got := OneLine("a\nb\x1b"); got != `a\nb\x1b` {
		t.Errorf("got %q", got)
	}
}
