package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/author/tree"
)

// Plan is a set of files to write below a directory.
type Plan struct {
	// Notes are for the reader: open points, and the next steps.
	Notes []string
	// Sample is the path of the sample of the kind that was added last.
	Sample string

	dir   string
	files []file
}

type file struct {
	path    string // relative, with slashes
	content []byte
	// edits is true for a file that exists.
	edits bool
	// link is where a symbolic link leads to, relative to it; "" is a file.
	link string
}

func (p *Plan) create(path string, content []byte) {
	p.files = append(p.files, file{path: path, content: content})
}

// link plans a symbolic link.
func (p *Plan) link(path, target string) {
	p.files = append(p.files, file{path: path, link: target})
}

// planned returns the place of a file in the plan; -1 if it has none.
func (p *Plan) planned(path string) int {
	return slices.IndexFunc(p.files, func(f file) bool { return f.path == path })
}

// read returns the content that a file has once the plan is carried out as far as it goes now.
func (p *Plan) read(path string) ([]byte, error) {
	if i := p.planned(path); i >= 0 {
		return p.files[i].content, nil
	}
	return os.ReadFile(filepath.Join(p.dir, filepath.FromSlash(path)))
}

// edit replaces the content of a file that exists, or is planned.
func (p *Plan) edit(path string, change func(content []byte) ([]byte, error)) error {
	content, err := p.read(path)
	if err != nil {
		return fmt.Errorf("init has written this file, and create api adds to it; restore it, or take it from init in an empty directory: %w", err)
	}
	if content, err = change(content); err != nil {
		return fmt.Errorf("%s:%w", path, err)
	}
	if i := p.planned(path); i >= 0 {
		p.files[i].content = content
	} else {
		p.files = append(p.files, file{path: path, content: content, edits: true})
	}
	return nil
}

// Show writes a line for each file.
func (p *Plan) Show(out io.Writer) {
	for _, f := range slices.SortedFunc(slices.Values(p.files), func(a, b file) int { return strings.Compare(a.path, b.path) }) {
		what := "create"
		if f.edits {
			what = "edit  "
		}
		fmt.Fprintln(out, what, f.path)
	}
}

// Check returns an error that names every file that would be overwritten, and one for a symbolic link
// in the way.
func (p *Plan) Check() error {
	var there []string
	for _, f := range p.files {
		if _, err := os.Lstat(p.path(f)); !f.edits && !errors.Is(err, fs.ErrNotExist) {
			there = append(there, f.path)
		} else if err := tree.Check(p.dir, f.path); err != nil {
			return fmt.Errorf("nothing was written: %w", err)
		}
	}
	if len(there) > 0 {
		slices.Sort(there)
		return fmt.Errorf("nothing was written, because these files exist: %s; move them away, or choose another name or directory", strings.Join(there, ", "))
	}
	return nil
}

// Write writes the files, if none is overwritten.
func (p *Plan) Write() error {
	if err := p.Check(); err != nil {
		return err
	}
	for _, f := range p.files {
		if err := p.write(f); err != nil {
			dir, _ := filepath.Abs(p.dir) // Without it the path is shown as it was given.
			return fmt.Errorf("write %s into the directory %s, which has to be writable: %w", f.path, cmp.Or(dir, p.dir), err)
		}
	}
	return nil
}

func (p *Plan) write(f file) error {
	switch {
	case f.link != "":
		return tree.Link(p.dir, f.path, f.link)
	case f.edits:
		return tree.Replace(p.dir, f.path, f.content)
	}
	return tree.Create(p.dir, f.path, f.content)
}

func (p *Plan) path(f file) string { return filepath.Join(p.dir, filepath.FromSlash(f.path)) }
