// Package program holds ensign_run.py (with ensign_events.py), the Python program that a run executes:
// ansible-runner with the playbook in the same process. A cold run starts an interpreter
// with it; the server for warm runs has loaded it already.
//
// The package writes the program to a directory. It does not start anything.
//
// # Gotchas
//
//   - ansible-runner usually starts the playbook behind a terminal and looks for events in all
//     text that is displayed. Here the playbook runs in ansible-runner's own process, and the
//     display callback passes each event on as an object. So no text can become an event.
//   - The standard output carries only events. Ansible's own descriptors 1 and 2 carry text.
package program

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Name is the name of the file that an interpreter executes.
const Name = "ensign_run.py"

//go:embed *.py
var source embed.FS

// Provide makes sure that dir contains the program, and returns the path of the file to
// execute. Only this user may enter dir. Provide is called before each start, because a
// cleanup of temporary files or a full disk may have damaged a file.
func Provide(dir string) (path string, err error) {
	files, err := source.ReadDir(".")
	for _, file := range files {
		err = errors.Join(err, provide(dir, file.Name()))
	}
	if err != nil {
		return "", fmt.Errorf("provide the program of runs: %w", err)
	}
	return filepath.Join(dir, Name), nil
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
	return replaceFile(dir, path, content)
}

// replaceFile replaces the whole file, because an interpreter may be reading it.
func replaceFile(dir, path string, content []byte) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	file, err := os.CreateTemp(dir, filepath.Base(path)+".*") // With mode 0600.
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
