// Package changes writes the changes that runs of charts would make, for people and programs.
//
// It finds nothing out.
package changes

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/ensign-operator/ensign/internal/chart/engine"
	"github.com/ensign-operator/ensign/internal/chart/objects"
	"github.com/ensign-operator/ensign/internal/observe/terminal"
)

// Resource is a CR with the changes by a run.
type Resource struct {
	// Resource is KIND/NAME.
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	engine.Preview

	// Error is why that is not known.
	Error string `json:"error,omitempty"`
}

// Differs reports whether a run would do something.
func (r Resource) Differs() bool { return len(r.Changes)+len(r.Hooks) > 0 }

// Fails reports whether that is not known, or a run would fail.
func (r Resource) Fails() bool {
	for _, c := range r.Changes {
		if c.Error != "" {
			return true
		}
	}
	return r.Error != ""
}

// marks are the signs and colours of changes.
var marks = map[string]struct { //nolint:gochecknoglobals // A table.
	sign  string
	color terminal.Color
}{
	"create": {"+", terminal.Green}, "update": {"~", terminal.Yellow}, "replace": {"!", terminal.Yellow},
	"delete": {"-", terminal.Red}, "keep": {"=", terminal.Faint},
}

// Printer writes resources as text.
type Printer struct {
	Out     io.Writer
	Palette terminal.Palette
	// Summary leaves out how objects change.
	Summary bool
}

// Print writes a resource; nothing if a run would do nothing for it.
func (p Printer) Print(r Resource) {
	if !r.Differs() && r.Error == "" {
		return
	}
	name := r.Resource
	if r.Namespace != "" {
		name += " -n " + r.Namespace
	}
	if r.Error != "" {
		p.say(terminal.Red, name+": "+r.Error)
		return
	}
	what := fmt.Sprintf("%s: %s of release %s", name, r.Action, r.Release)
	if r.Revision > 0 {
		what += fmt.Sprintf(", revision %d", r.Revision)
	}
	p.say(terminal.Plain, what)
	for _, c := range r.Changes {
		p.change(c)
	}
	for _, hook := range r.Hooks {
		p.say(terminal.Cyan, fmt.Sprintf("  > %s: hook %s runs", hook.Event, hook.Name))
	}
}

func (p Printer) change(c objects.Change) {
	const most = 8
	mark := marks[c.Kind]
	line := fmt.Sprintf("  %s %s", mark.sign, c.Name)
	if len(c.Fields) > 0 {
		line += ": " + strings.Join(c.Fields[:min(len(c.Fields), most)], ", ")
	}
	if more := len(c.Fields) - most; more > 0 {
		line += fmt.Sprintf(" and %d more", more)
	}
	p.say(mark.color, line)
	if c.Error != "" {
		p.say(terminal.Red, "    fails: "+c.Error)
	}
	if len(c.Random) > 0 {
		p.say(terminal.Cyan, "    another value at each rendering: "+strings.Join(c.Random, ", "))
	}
	if c.Note != "" {
		p.say(terminal.Faint, "    "+c.Note)
	}
	if p.Summary {
		return
	}
	_, diff, _ := strings.Cut(c.Diff, "+++ after\n")
	for text := range strings.Lines(diff) {
		color := map[byte]terminal.Color{'+': terminal.Green, '-': terminal.Red, '@': terminal.Faint}[text[0]]
		p.say(color, "    "+strings.TrimRight(text, "\n"))
	}
}

func (p Printer) say(color terminal.Color, text string) {
	fmt.Fprintln(p.Out, p.Palette.Paint(color, text))
}

// Total says how much would change.
func Total(all []Resource) string {
	counts, failing := map[string]int{}, 0
	for _, r := range all {
		for _, c := range r.Changes {
			counts[c.Kind]++
			if c.Error != "" {
				failing++
			}
		}
		counts["hook"] += len(r.Hooks)
	}
	counts["would fail"] = failing
	var parts []string
	for _, kind := range []string{"create", "update", "replace", "delete", "keep", "hook", "would fail"} {
		if n := counts[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "no differences")
}
