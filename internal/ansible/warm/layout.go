package warm

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ensign-operator/ensign/internal/ansible/files"
)

//go:embed server/serve.py server/ensign_warm/*.py server/ensign_warm/known.json
var source embed.FS

// layOut makes the directory ready for the start of a process, or restores its missing parts:
// somebody may clean up there. home is the process' working directory, temp its own
// ANSIBLE_LOCAL_TEMP.
func (s *Server) layOut() (home, temp string, err error) {
	home = filepath.Join(s.dir, "home")
	err = errors.Join(directory(s.dir), directory(home), s.unpack())
	if err == nil {
		temp, err = os.MkdirTemp(s.dir, "tmp")
	}
	if err != nil {
		return "", "", fmt.Errorf("lay out the directory of the server for warm runs: %w", err)
	}
	return home, temp, nil
}

// writeTemplates writes the file with the templates that a process compiles, in a directory that
// is new.
func writeTemplates(path string, templates []files.Template) error {
	text, err := json.Marshal(templates)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the templates for the server for warm runs: %w", err)
	}
	return nil
}

func directory(path string) error {
	if err := os.Mkdir(path, 0o700); !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// unpack writes the files of the server's source that are missing or differ from the embedded ones.
// A full disk or another program may have left other files.
func (s *Server) unpack() error {
	return fs.WalkDir(source, "server", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		there := filepath.Join(s.dir, path)
		if entry.IsDir() {
			return directory(there)
		}
		content, err := source.ReadFile(path)
		if err != nil {
			return err
		}
		if info, err := os.Lstat(there); err == nil && !info.Mode().IsRegular() {
			if err := os.RemoveAll(there); err != nil {
				return err
			}
		}
		if found, err := os.ReadFile(there); err == nil && bytes.Equal(found, content) {
			return nil
		}
		return os.WriteFile(there, content, 0o600)
	})
}
