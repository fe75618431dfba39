// Package fix replaces scalars of YAML files. It changes the bytes of the one scalar at its line and column, so
// that comments and the layout of the file stay. It refuses scalars of several lines, with an anchor or with a
// tag. It reads each file again and compares it, so that nothing else changes.
package fix

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/author/tree"
)

// Edit is a scalar of a file, and the text that takes its place.
type Edit struct {
	File  string
	Node  *yaml.Node
	Value string
}

// Refusal is an edit that cannot be made.
type Refusal struct {
	Edit

	Why string
}

// Change is a file that has edits.
type Change struct {
	File          string
	Before, After string
	// Edits is how many scalars are replaced.
	Edits int
}

// Plan returns the files with the edits in them, and the edits that are refused. It writes nothing. The longest
// of several edits of one scalar counts: units with the same file may have several.
func Plan(edits []Edit) (changes []Change, refused []Refusal) {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b Edit) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(b.Node.Line, a.Node.Line), cmp.Compare(b.Node.Column, a.Node.Column), cmp.Compare(len(b.Value), len(a.Value)))
	})
	edits = slices.CompactFunc(edits, func(a, b Edit) bool {
		return a.File == b.File && a.Node.Line == b.Node.Line && a.Node.Column == b.Node.Column
	})
	for _, edit := range edits { // From the last of a file to its first: the places of the others stay.
		if len(changes) == 0 || changes[len(changes)-1].File != edit.File {
			text, err := os.ReadFile(edit.File)
			if err != nil {
				refused = append(refused, Refusal{edit, err.Error()})
				continue
			}
			changes = append(changes, Change{File: edit.File, Before: string(text), After: string(text)})
		}
		change := &changes[len(changes)-1]
		after, err := replace(change.After, edit)
		if err != nil {
			refused = append(refused, Refusal{edit, err.Error()})
			continue
		}
		change.After = after
		change.Edits++
	}
	return slices.DeleteFunc(changes, func(c Change) bool { return c.Edits == 0 }), refused
}

// Diff returns the change as a unified diff with the name of the file.
func (c Change) Diff(name string) string {
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: slices.Collect(strings.Lines(c.Before)), B: slices.Collect(strings.Lines(c.After)), FromFile: "a/" + name, ToFile: "b/" + name, Context: 2,
	})
	if err != nil {
		return err.Error() + "\n"
	}
	return text
}

// Write writes the file of the project in dir, unless it has changed since it was read.
func (c Change) Write(dir string) error {
	if text, err := os.ReadFile(c.File); err != nil || string(text) != c.Before {
		return fmt.Errorf("%s: the file has changed since it was read; run the command again", c.File)
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	file, err := filepath.EvalSymlinks(c.File) // A directory of roles may be a link.
	if err != nil {
		return err
	}
	relative, err := filepath.Rel(root, file)
	if err != nil {
		return err
	}
	return tree.Replace(root, relative, []byte(c.After))
}
