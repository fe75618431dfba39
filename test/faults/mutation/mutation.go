// Package mutation builds the product with patches that break it, which tests have to notice.
//
// A patch is applied to copies of the files that it touches, which the build takes in their
// place: the working tree is never changed. The package does not know what notices a patch.
package mutation

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

// Patch is a file with some words, an empty line, and a diff of the repository.
type Patch struct {
	// Name is that of the file, without its extension.
	Name string
	// Head is what stands before the empty line.
	Head string
	Path string
	// Files are those that it touches, relative to the root of the repository.
	Files []string
}

var touched = regexp.MustCompile(`(?m)^\+\+\+ b/(.+)$`)

// Load reads the patches in dir, in the order of their names.
func Load(dir string) ([]Patch, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, fmt.Errorf("look for mutants: %w", err)
	}
	var found []Patch
	var errs []error
	for _, path := range paths {
		text, err := os.ReadFile(path)
		errs = append(errs, err)
		head, _, hasDiff := strings.Cut(string(text), "\n\n--- a/")
		if !hasDiff {
			errs = append(errs, fmt.Errorf("mutant %s has no diff behind an empty line", path))
			continue
		}
		p := Patch{Name: strings.TrimSuffix(filepath.Base(path), ".patch"), Head: head, Path: path}
		for _, file := range touched.FindAllStringSubmatch(string(text), -1) {
			p.Files = append(p.Files, file[1])
		}
		found = append(found, p)
	}
	return found, errors.Join(errs...)
}

// Build makes the programs, such as "manager" of cmd/manager, with the patch from the
// repository in root, in dir. The error says so when the patch does not apply any more.
func (p Patch) Build(ctx context.Context, root, dir string, programs ...string) error {
	replace, err := p.Apply(ctx, root, filepath.Join(dir, "mutated"))
	if err != nil {
		return fmt.Errorf("mutant %s does not apply to the code as it is: bring %s up to date: %w", p.Name, p.Path, err)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return fmt.Errorf("encode the overlay: %w", err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return fmt.Errorf("write the overlay: %w", err)
	}
	args := []string{"build", "-overlay", overlay, "-o", dir + string(filepath.Separator)}
	for _, program := range programs {
		args = append(args, "./cmd/"+program)
	}
	build := exec.CommandContext(ctx, "go", args...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("mutant %s does not compile: %w: %s", p.Name, err, out)
	}
	return nil
}

// Apply patches copies of the files, and returns which of them replace which files.
func (p Patch) Apply(ctx context.Context, root, copies string) (map[string]string, error) {
	replace := map[string]string{}
	for _, name := range p.Files {
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
	apply := exec.CommandContext(ctx, "git", "apply", "-p1", "--whitespace=nowarn", p.Path)
	// The copies are in no repository, whatever is above them.
	apply.Dir, apply.Env = copies, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(copies), "GIT_DIR=")
	if out, err := apply.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return replace, nil
}
