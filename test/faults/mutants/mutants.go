// Package mutants has patches of the product that each break an invariant, and
// builds managers with them. The fault plans have to notice every one: that is the
// test of the plans.
//
// A patch begins with a header, before its first file:
//
//	Invariant: I3
//	Plans: ^delete-retry/without/fault$
//	In a sentence, what it breaks.
//
// Plans is an expression of names as PLANS of `make faults` takes it; plans without
// a fault count too. The patch is applied to copies of the files that it touches,
// which the build takes in their place: the working tree is never changed.
package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Mutant is one patch.
type Mutant struct {
	// Name is that of the file, without its extension.
	Name string
	// Invariants are those that it breaks, one of which has to be seen broken.
	Invariants []string
	// Plans is the expression of the plans that have to notice it.
	Plans string
	// Breaks says what it breaks.
	Breaks string

	path  string
	files []string // that it touches, relative to the root of the repository
}

// Load reads the mutants of a directory, in the order of their names.
func Load(dir string) ([]Mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, fmt.Errorf("look for mutants: %w", err)
	}
	var found []Mutant
	var errs []error
	for _, path := range paths {
		m, err := load(path)
		found, errs = append(found, m), append(errs, err)
	}
	if len(found) == 0 {
		errs = append(errs, fmt.Errorf("%q holds no *.patch", dir))
	}
	return found, errors.Join(errs...)
}

func load(path string) (Mutant, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Mutant{}, fmt.Errorf("read a mutant: %w", err)
	}
	m := Mutant{Name: strings.TrimSuffix(filepath.Base(path), ".patch"), path: path}
	header, body, _ := strings.Cut(string(text), "\n--- a/")
	for line := range strings.Lines(header) {
		line = strings.TrimSpace(line)
		if value, ok := strings.CutPrefix(line, "Invariant: "); ok {
			m.Invariants = strings.Fields(value)
		} else if value, ok := strings.CutPrefix(line, "Plans: "); ok {
			m.Plans = value
		} else {
			m.Breaks = strings.TrimSpace(m.Breaks + " " + line)
		}
	}
	for line := range strings.Lines("--- a/" + body) {
		if name, ok := strings.CutPrefix(line, "+++ b/"); ok {
			m.files = append(m.files, strings.TrimSpace(name))
		}
	}
	return m, m.check()
}

// check says what is missing in the header.
func (m Mutant) check() error {
	known := regexp.MustCompile(`^(I([1-9]|10)|end|runs)$`)
	switch {
	case len(m.Invariants) == 0 || slices.ContainsFunc(m.Invariants, func(i string) bool { return !known.MatchString(i) }):
		return fmt.Errorf("mutant %s: the header needs a line such as \"Invariant: I2\", got %q", m.Name, m.Invariants)
	case m.Plans == "":
		return fmt.Errorf("mutant %s: the header needs a line such as \"Plans: ^update/status-result/lost$\"", m.Name)
	case m.Breaks == "":
		return fmt.Errorf("mutant %s: the header does not say what the patch breaks", m.Name)
	case len(m.files) == 0:
		return fmt.Errorf("mutant %s: the patch touches no file (a/… and b/… are needed before the names)", m.Name)
	}
	return nil
}

// Build makes a manager with the mutant from the repository in root, in dir, and
// returns its path. The error says so when the patch does not apply any more.
func (m Mutant) Build(ctx context.Context, root, dir string) (string, error) {
	overlay, err := m.apply(ctx, root, filepath.Join(dir, "mutated"))
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "manager")
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", program, "./cmd/manager")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mutant %s does not compile: %w: %s", m.Name, err, out)
	}
	return program, nil
}

// apply patches copies of the files and returns the file that tells the compiler
// of them.
func (m Mutant) apply(ctx context.Context, root, copies string) (string, error) {
	replace := map[string]string{}
	for _, name := range m.files {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return "", m.doesNotApply(err)
		}
		path := filepath.Join(copies, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o600)); err != nil { //nolint:gosec // Our own patches.
			return "", fmt.Errorf("copy what mutant %s touches: %w", m.Name, err)
		}
		replace[filepath.Join(root, name)] = path
	}
	patch, err := filepath.Abs(m.path)
	if err != nil {
		return "", fmt.Errorf("find mutant %s: %w", m.Name, err)
	}
	apply := exec.CommandContext(ctx, "git", "apply", "-p1", "--whitespace=nowarn", patch)
	// The copies are in no repository, whatever is above them.
	apply.Dir, apply.Env = copies, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(copies), "GIT_DIR=")
	if out, err := apply.CombinedOutput(); err != nil {
		return "", m.doesNotApply(fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out))))
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("encode the overlay: %w", err)
	}
	overlay := filepath.Join(filepath.Dir(copies), "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", fmt.Errorf("write the overlay: %w", err)
	}
	return overlay, nil
}

func (m Mutant) doesNotApply(why error) error {
	return fmt.Errorf("mutant %s does not apply to the code as it is: bring %s up to date: %w", m.Name, m.path, why)
}
