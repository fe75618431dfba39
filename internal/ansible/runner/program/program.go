// Package program is the program that a run executes, ensign_run.py: ansible-runner with
// the playbook in the same process, whose job events are never text. A cold run is an
// interpreter that executes it; servers for warm runs have imported it.
//
// The package writes it where an interpreter finds it. It starts nothing.
//
// # Gotchas
//
//   - ansible-runner usually starts the playbook behind a terminal and looks for events in all
//     that is displayed. Here the playbook runs in ansible-runner's own process, and the
//     display callback hands each event over as an object.
//   - The standard output takes events and nothing else. Descriptors 1 and 2 of Ansible are
//     for text.
package program

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Name is the program's file.
const Name = "ensign_run.py"

//go:embed ensign_run.py
var source []byte

// Provide makes sure that dir, which only this user may enter, has the program as it is
// embedded here, and returns its path. It is for before each start: what cleans up
// directories, or fills disks, knows nothing of runs.
func Provide(dir string) (path string, err error) {
	path = filepath.Join(dir, Name)
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, source) {
		return path, nil
	}
	if err := write(dir, path); err != nil {
		return "", fmt.Errorf("provide the program of runs: %w", err)
	}
	return path, nil
}

// write replaces the file as a whole, because an interpreter may be reading it.
func write(dir, path string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	file, err := os.CreateTemp(dir, Name+".*") // With mode 0600.
	if err != nil {
		return err
	}
	_, err = file.Write(source)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
