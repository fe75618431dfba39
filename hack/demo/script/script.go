// Package script writes what the audience of the guided tour reads. It does not
// know what the tour is about.
package script

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Script is one performance's text.
type Script struct {
	out   io.Writer
	began time.Time
}

// New returns a script that is written to out, and whose clock starts now.
func New(out io.Writer) *Script { return &Script{out: out, began: time.Now()} }

// Elapsed is the time since New, in whole seconds.
func (s *Script) Elapsed() time.Duration { return time.Since(s.began).Round(time.Second) }

// Say writes plain text.
func (s *Script) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.out, format+"\n", args...)
}

// Title opens a step.
func (s *Script) Title(number, of int, title, why string) {
	s.Say("\n━━━ %d/%d  %s  ━━━  (%s since the start)", number, of, title, s.Elapsed())
	s.Say("%s", wrap(why))
}

// Command shows what was typed, in the way that it can be typed again.
func (s *Script) Command(args []string) {
	words := []string{"kubectl"}
	for _, arg := range args {
		words = append(words, quote(arg))
	}
	s.Say("  $ %s", strings.Join(words, " "))
}

// Output shows what a command or the manager's log said.
func (s *Script) Output(text string) {
	for line := range strings.Lines(text) {
		s.Say("      %s", strings.TrimRight(line, "\n"))
	}
}

// Holds notes an assertion that holds.
func (s *Script) Holds(format string, args ...any) {
	s.Say("  ✓ %s", fmt.Sprintf(format, args...))
}

// quote makes a word fit for a shell.
func quote(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n'\"\\{}[]()<>|&;*?$`#~") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// wrap breaks a text into lines of at most 92 characters, indented.
func wrap(text string) string {
	const width, indent = 92, "  "
	var lines []string
	line := indent
	for word := range strings.FieldsSeq(text) {
		if len(line)+len(word) > width {
			lines = append(lines, strings.TrimRight(line, " "))
			line = indent
		}
		line += word + " "
	}
	return strings.Join(append(lines, strings.TrimRight(line, " ")), "\n")
}
