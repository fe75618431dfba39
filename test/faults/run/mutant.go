package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// mutantFormat is how the file of a mutant begins. Its plans are an expression of
// names as PLANS of `make faults` takes it; plans without a fault count too.
//
//	Invariant: I3
//	Plans: ^delete-retry/without/fault$
//	In a sentence, what it breaks.
//
//	--- a/…
var mutantFormat = regexp.MustCompile(`(?s)^Invariant: ((?:\b(?:I[1-9]|I10|end|runs) ?)+)\nPlans: ([^\n]+)\n(.+?)\n\n--- a/`)

// mutant is a patch of the product that breaks an invariant. The fault plans have to
// notice every one: that is the test of the plans. The patch is applied to copies of
// the files that it touches, which the build takes in their place: the working tree
// is never changed.
type mutant struct {
	// name is that of the file, without its extension.
	name string
	// invariants are those that it breaks, one of which has to be seen broken.
	invariants []string
	// plans is the expression of the plans that have to notice it.
	plans string
	// breaks says what it breaks.
	breaks string

	path  string
	files []string // that it touches, relative to the root of the repository
}

// loadMutants reads the mutants of the repository in root, in the order of their names.
func loadMutants(root string) ([]mutant, error) {
	paths, err := filepath.Glob(filepath.Join(root, "test", "faults", "mutants", "*.patch"))
	if err != nil {
		return nil, fmt.Errorf("look for mutants: %w", err)
	}
	var found []mutant
	var errs []error
	for _, path := range paths {
		text, err := os.ReadFile(path)
		errs = append(errs, err)
		head := mutantFormat.FindStringSubmatch(string(text))
		if head == nil {
			errs = append(errs, fmt.Errorf("mutant %s does not begin with lines \"Invariant: I2\", \"Plans: ^update/status-result/lost$\" and a sentence", path))
			continue
		}
		m := mutant{name: strings.TrimSuffix(filepath.Base(path), ".patch"), invariants: strings.Fields(head[1]), plans: head[2], breaks: head[3], path: path}
		for _, file := range regexp.MustCompile(`(?m)^\+\+\+ b/(.+)$`).FindAllStringSubmatch(string(text), -1) {
			m.files = append(m.files, file[1])
		}
		found = append(found, m)
	}
	return found, errors.Join(errs...)
}

// build makes a manager with the mutant from the repository in root, in dir, and
// returns its path. The error says so when the patch does not apply any more.
func (m mutant) build(ctx context.Context, root, dir string) (string, error) {
	replace, err := m.apply(ctx, root, filepath.Join(dir, "mutated"))
	if err != nil {
		return "", fmt.Errorf("mutant %s does not apply to the code as it is: bring %s up to date: %w", m.name, m.path, err)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("encode the overlay: %w", err)
	}
	overlay, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "manager")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", fmt.Errorf("write the overlay: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", program, "./cmd/manager")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mutant %s does not compile: %w: %s", m.name, err, out)
	}
	return program, nil
}

// apply patches copies of the files, and returns which of them replace which files.
func (m mutant) apply(ctx context.Context, root, copies string) (map[string]string, error) {
	replace := map[string]string{}
	for _, name := range m.files {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		path := filepath.Join(copies, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o600)); err != nil { //nolint:gosec // Our own patches.
			return nil, err
		}
		replace[filepath.Join(root, name)] = path
	}
	apply := exec.CommandContext(ctx, "git", "apply", "-p1", "--whitespace=nowarn", m.path)
	// The copies are in no repository, whatever is above them.
	apply.Dir, apply.Env = copies, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(copies), "GIT_DIR=")
	if out, err := apply.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return replace, nil
}
