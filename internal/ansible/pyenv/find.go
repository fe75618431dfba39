package pyenv

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Remedy says what to do about an environment that is missing or does not do.
const Remedy = "run `make python`, or install ansible-core 2.19 or later and ansible-runner with pip into a virtual environment and put its bin directory on PATH"

const (
	runnerName   = "ansible-runner"
	playbookName = "ansible-playbook"
)

// Search says where to look for an environment.
type Search struct {
	// Dir is the working directory, as an absolute path.
	Dir string
	// Executable is the manager's own path.
	Executable string
	// Environ is the manager's environment as "NAME=value". VIRTUAL_ENV and PATH
	// are looked at; the programs of the environment are run with all of it.
	Environ []string
}

// Env is a Python environment that has ansible-runner and ansible-playbook. All
// paths are absolute.
type Env struct {
	// Bin is the directory of its programs.
	Bin string
	// Runner is ansible-runner.
	Runner string
	// Python is the interpreter that ansible-runner itself runs on.
	Python string
	// Skipped says why it is not the one that VIRTUAL_ENV names; "" if it is, or none
	// was named.
	Skipped string

	environ []string
}

// Find returns the first environment of: $VIRTUAL_ENV/bin, .venv/bin in the
// working directory, the directories of PATH, and .venv/bin beside the directory
// of the manager's program. The error lists the places and says what to do.
func Find(s Search) (Env, error) {
	var looked []string
	for _, bin := range s.places() {
		env, err := s.at(bin)
		if err == nil {
			if s.getenv("VIRTUAL_ENV") != "" && len(looked) > 0 {
				env.Skipped = looked[0]
			}
			return env, nil
		}
		looked = append(looked, fmt.Sprintf("%s: %v", bin, err))
	}
	return Env{}, fmt.Errorf("no Python environment with ansible-runner and ansible-playbook was found; %s. Looked at:\n  %s",
		Remedy, strings.Join(looked, "\n  "))
}

// places are the directories to look in, each once.
func (s Search) places() []string {
	var places []string
	add := func(dir string) {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(s.Dir, dir)
		}
		dir = filepath.Clean(dir)
		if !slices.Contains(places, dir) {
			places = append(places, dir)
		}
	}
	if venv := s.getenv("VIRTUAL_ENV"); venv != "" {
		add(filepath.Join(venv, "bin"))
	}
	add(filepath.Join(".venv", "bin"))
	for _, dir := range filepath.SplitList(s.getenv("PATH")) {
		if dir != "" {
			add(dir)
		}
	}
	if s.Executable != "" {
		add(filepath.Join(filepath.Dir(s.Executable), "..", ".venv", "bin"))
	}
	return places
}

func (s Search) getenv(name string) string {
	value := ""
	for _, entry := range s.Environ {
		if v, found := strings.CutPrefix(entry, name+"="); found {
			value = v
		}
	}
	return value
}

// at is the environment whose programs are in bin.
func (s Search) at(bin string) (Env, error) {
	for _, name := range []string{runnerName, playbookName} {
		if err := executable(filepath.Join(bin, name)); err != nil {
			return Env{}, err
		}
	}
	env := Env{Bin: bin, Runner: filepath.Join(bin, runnerName), environ: s.Environ}
	var err error
	env.Python, err = s.interpreter(env)
	return env, err
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("no %s", filepath.Base(path))
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable", filepath.Base(path))
	}
	return nil
}

// interpreter is what ansible-runner's first line names, if that is a Python, or
// else the Python beside it.
func (s Search) interpreter(env Env) (string, error) {
	first, err := firstLine(env.Runner)
	if err != nil {
		return "", err
	}
	candidates := []string{}
	if words := strings.Fields(strings.TrimPrefix(first, "#!")); len(words) > 0 {
		name := words[0]
		if filepath.Base(name) == "env" {
			name = s.lookPath(words[len(words)-1])
		}
		if strings.HasPrefix(filepath.Base(name), "python") {
			candidates = append(candidates, name)
		}
	}
	candidates = append(candidates, filepath.Join(env.Bin, "python3"), filepath.Join(env.Bin, "python"))
	for _, candidate := range candidates {
		if filepath.IsAbs(candidate) && executable(candidate) == nil {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("the Python of %s is gone (first line %q); make the environment anew", runnerName, first)
}

func (s Search) lookPath(name string) string {
	for _, dir := range filepath.SplitList(s.getenv("PATH")) {
		if path := filepath.Join(dir, name); executable(path) == nil {
			return path
		}
	}
	return ""
}

// firstLine is the first line of a script, or of a program its first bytes.
func firstLine(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	line, _, err := bufio.NewReaderSize(f, 512).ReadLine()
	if err != nil {
		return "", fmt.Errorf("read %q: %w", path, err)
	}
	return string(line), nil
}
