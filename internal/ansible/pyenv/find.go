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

// Remedy says what to do about an environment that is missing or unusable.
const Remedy = "run `make python`, or install ansible-core 2.19 or later and ansible-runner with pip into a virtual environment and put its bin directory on PATH"

const (
	runnerName   = "ansible-runner"
	playbookName = "ansible-playbook"
)

// Search says where to look for an environment.
type Search struct {
	// Dir is the absolute path of the working directory.
	Dir string
	// Executable is the path of the manager's program.
	Executable string
	// Environ is the manager's environment as "NAME=value". Find uses VIRTUAL_ENV and PATH
	// of it. The programs of the environment are run with all of it.
	Environ []string
}

// Env is a Python environment that has ansible-runner and ansible-playbook. All
// paths are absolute.
type Env struct {
	// Bin is the directory of its programs.
	Bin string
	// Runner is the path of ansible-runner.
	Runner string
	// Python is the interpreter on which ansible-runner runs.
	Python string
	// VirtualEnvError says why the environment of VIRTUAL_ENV was not used; "" if it was
	// used or VIRTUAL_ENV is not set.
	VirtualEnvError string

	environ []string
}

// Find returns the first environment among $VIRTUAL_ENV/bin, .venv/bin in the working
// directory, the directories of PATH, and ../.venv/bin relative to the directory of the
// manager's program. The error lists these directories and says what to do.
func Find(s Search) (Env, error) {
	var failures []string
	for _, bin := range s.candidates() {
		env, err := s.envIn(bin)
		if err == nil {
			if s.getenv("VIRTUAL_ENV") != "" && len(failures) > 0 {
				env.VirtualEnvError = failures[0]
			}
			return env, nil
		}
		failures = append(failures, fmt.Sprintf("%s: %v", bin, err))
	}
	return Env{}, fmt.Errorf("no Python environment with ansible-runner and ansible-playbook was found; %s. Looked at:\n  %s",
		Remedy, strings.Join(failures, "\n  "))
}

// candidates returns the directories to look in, without duplicates.
func (s Search) candidates() []string {
	var dirs []string
	add := func(dir string) {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(s.Dir, dir)
		}
		dir = filepath.Clean(dir)
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
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
	return dirs
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

// envIn returns the environment whose programs are in bin.
func (s Search) envIn(bin string) (Env, error) {
	for _, name := range []string{runnerName, playbookName} {
		if err := checkExecutable(filepath.Join(bin, name)); err != nil {
			return Env{}, err
		}
	}
	env := Env{Bin: bin, Runner: filepath.Join(bin, runnerName), environ: s.Environ}
	var err error
	env.Python, err = s.interpreter(env)
	return env, err
}

func checkExecutable(path string) error {
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

// interpreter returns the Python in ansible-runner's first line. If there is none, it
// returns the Python in the same directory.
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
		if filepath.IsAbs(candidate) && checkExecutable(candidate) == nil {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("the Python of %s is gone (first line %q); make the environment again", runnerName, first)
}

func (s Search) lookPath(name string) string {
	for _, dir := range filepath.SplitList(s.getenv("PATH")) {
		if path := filepath.Join(dir, name); checkExecutable(path) == nil {
			return path
		}
	}
	return ""
}

// firstLine returns the first line of a script, or the first bytes of a binary.
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
