package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// mutant is a patch that breaks the product, which tests have to notice. It is applied to
// copies of the files that it touches, which the build takes in their place: the working
// tree is never changed.
type mutant struct {
	// name is that of the file, without its extension.
	name, path string
	// marks are what its file says of what has to notice it, breaks what it breaks.
	marks  []string
	breaks string
	// files are those that it touches, relative to the root of the repository.
	files []string

	// by is what noticed it, because what that saw; "" if nothing did.
	by, because string
	err         error
	took        time.Duration
}

var touched = regexp.MustCompile(`(?m)^\+\+\+ b/(.+)$`)

// load reads those mutants of the kind whose names match the expression, in their order.
func (k kind) load(root, only string) ([]*mutant, error) {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("select mutants: %w", err)
	}
	paths, err := filepath.Glob(filepath.Join(root, k.dir, "*.patch"))
	var found []*mutant
	errs := []error{err}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		before, _, hasDiff := strings.Cut(string(text), "\n\n--- a/")
		head := k.format.FindStringSubmatch(before)
		if err != nil || head == nil || !hasDiff {
			errs = append(errs, err, fmt.Errorf("mutant %s does not begin with %s, a sentence, an empty line and a diff", path, k.format))
			continue
		}
		last := len(head) - 1
		m := &mutant{name: strings.TrimSuffix(filepath.Base(path), ".patch"), path: path, marks: head[1:last], breaks: head[last]}
		for _, file := range touched.FindAllStringSubmatch(string(text), -1) {
			m.files = append(m.files, file[1])
		}
		if chosen.MatchString(m.name) {
			found = append(found, m)
		}
	}
	return found, errors.Join(errs...)
}

// overlay applies the patch in dir, and returns the file by which go takes the patched copies.
func (m *mutant) overlay(ctx context.Context, root, dir string) (string, error) {
	replace, err := m.apply(ctx, root, filepath.Join(dir, "mutated"))
	if err != nil {
		return "", fmt.Errorf("mutant %s does not apply to the code as it is: bring %s up to date: %w", m.name, m.path, err)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("encode the overlay: %w", err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("write the overlay: %w", err)
	}
	return path, nil
}

// build makes the programs, such as "manager" of cmd/manager, with the patch from the
// repository in root, in dir.
func (m *mutant) build(ctx context.Context, root, dir string, programs ...string) error {
	overlay, err := m.overlay(ctx, root, dir)
	if err != nil || len(programs) == 0 {
		return err
	}
	args := []string{"build", "-overlay", overlay, "-o", dir + string(filepath.Separator)}
	for _, program := range programs {
		args = append(args, "./cmd/"+program)
	}
	if err := command(ctx, root, "go", args...); err != nil {
		return fmt.Errorf("mutant %s does not compile: %w", m.name, err)
	}
	return nil
}

// apply patches copies of the files, and returns which of them replace which files.
func (m *mutant) apply(ctx context.Context, root, copies string) (map[string]string, error) {
	replace := map[string]string{}
	for _, name := range m.files {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		path := filepath.Join(copies, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return nil, err
		}
		replace[filepath.Join(root, name)] = path
	}
	// The copies are in no repository, whatever is above them.
	environment := []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(copies), "GIT_DIR="}
	return replace, command(ctx, copies, "env", append(environment, "git", "apply", "-p1", "--whitespace=nowarn", m.path)...)
}

// command runs a program to its end. The error has what it printed.
func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// verdict is what noticed the mutant, or what is wrong.
func (m *mutant) verdict() string {
	if m.err != nil {
		return "ERROR"
	}
	return cmp.Or(m.by, "SURVIVED")
}

// why says what was seen, or what is wrong.
func (m *mutant) why() string {
	if err := m.failed(); err != nil {
		return err.Error()
	}
	return m.because
}

// failed is nil for a mutant that was noticed.
func (m *mutant) failed() error {
	if m.err == nil && m.by == "" {
		return fmt.Errorf("mutant %s survived: %s", m.name, m.breaks)
	}
	return m.err
}
