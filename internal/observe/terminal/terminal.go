// Package terminal draws text for people at a terminal: in colours where the terminal has some
// and its reader did not switch them off. All text is made safe by sanitize.Text, so that
// only this package's own colours control the terminal.
package terminal

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/ensign-operator/ensign/internal/sanitize"
)

// Color is the number of a terminal's colour; the zero value is the terminal's own.
type Color string

// The colours, with Ansible's meaning: Red failed, Yellow changed, Green ok, Cyan skipped.
const (
	Plain  Color = ""
	Faint  Color = "2"
	Red    Color = "31"
	Green  Color = "32"
	Yellow Color = "33"
	Cyan   Color = "36"
)

// Palette paints text in colours if On is set, and makes it safe in any case.
type Palette struct{ On bool }

// Paint returns the text in a colour. Each of its lines begins and ends the colour by itself, so
// that lines can be cut out and mixed.
func (p Palette) Paint(c Color, text string) string {
	text = sanitize.Text(text)
	if !p.On || c == Plain || text == "" {
		return text
	}
	begin, end := "\x1b["+string(c)+"m", "\x1b[0m"
	return begin + strings.ReplaceAll(text, "\n", end+"\n"+begin) + end
}

// Is reports whether the writer is a terminal.
func Is(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// For returns the palette of a writer: colours if it is a terminal that has some, and whose
// reader did not set NO_COLOR (https://no-color.org).
func For(out io.Writer) Palette {
	return Palette{On: Is(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// OneLine returns the text on one line: names of tasks may hold anything.
func OneLine(text string) string {
	return strings.ReplaceAll(sanitize.Text(text), "\n", `\n`)
}

// Indent indents every line of the text.
func Indent(by, text string) string {
	return by + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+by)
}
