// Package program holds ensign_run.py (with the parts beside it), the Python program that a run executes:
// ansible-runner with the playbook in the same process. A cold run starts an interpreter
// with it; the server for warm runs has loaded it already.
//
// It also holds the guard: the module that every Python process of a run imports first, so that no
// name in a request leads to another object (guard/ensign_names.py).
//
// The package writes both to a directory. It does not start anything.
//
// # Gotchas
//
//   - ansible-runner usually starts the playbook behind a terminal and looks for events in all
//     text that is displayed. Here the playbook runs in ansible-runner's own process, and the
//     display callback passes each event on as an object. So no text can become an event.
//   - The standard output carries only events. Ansible's own descriptors 1 and 2 carry text.
//   - Python imports the guard, because it has the name sitecustomize and PYTHONPATH begins with
//     its directory. Interpreters keep their bytecode in a __pycache__ that is there before them:
//     one that appeared would look like a change of the modules that the server for warm runs has
//     imported.
package program

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Name is the name of the file that an interpreter executes.
const Name = "ensign_run.py"

// guard is the name of the directory that PYTHONPATH begins with.
const guard = "guard"

//go:embed *.py guard/*.py
var source embed.FS

// NearName is the name of the part of the program that finds plugins of a similar name.
const NearName = "ensign_near.py"

// Near returns the text of that part.
func Near() ([]byte, error) { return source.ReadFile(NearName) }

// Provide makes sure that dir contains the program and the guard, and returns the path of the
// file to execute. Only this user may enter dir. Provide is called before each start, because a
// cleanup of temporary files or a full disk may have damaged a file.
func Provide(dir string) (path string, err error) {
	if strings.ContainsRune(dir, filepath.ListSeparator) {
		return "", fmt.Errorf("provide the program of runs: PYTHONPATH cannot name %q, which contains %q", dir, filepath.ListSeparator)
	}
	err = errors.Join(provideFiles(dir, "."), provideFiles(dir, guard), makeDir(filepath.Join(dir, guard, "__pycache__")))
	if err != nil {
		return "", fmt.Errorf("provide the program of runs: %w", err)
	}
	return filepath.Join(dir, Name), nil
}

// PythonPath returns the PYTHONPATH of processes that the guard in dir is for. further is the
// former PYTHONPATH, or "".
func PythonPath(dir, further string) string {
	own := filepath.Join(dir, guard)
	if further == "" {
		return own // An empty entry would be the working directory.
	}
	return own + string(filepath.ListSeparator) + further
}

// provideFiles makes sure that a directory of the source is in dir.
func provideFiles(dir, from string) error {
	entries, err := source.ReadDir(from)
	err = errors.Join(err, makeDir(filepath.Join(dir, from)))
	for _, entry := range entries {
		if !entry.IsDir() {
			err = errors.Join(err, provide(dir, path.Join(from, entry.Name())))
		}
	}
	return err
}

func makeDir(path string) error {
	if err := os.Mkdir(path, 0o700); !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

func provide(dir, name string) error {
	content, err := source.ReadFile(name)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	if found, err := os.ReadFile(path); err == nil && bytes.Equal(found, content) {
		return nil
	}
	return replaceFile(path, content)
}

// replaceFile replaces the whole file, because an interpreter may be reading it.
func replaceFile(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // With mode 0600.
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
