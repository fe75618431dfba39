package warm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// fill lays out the directory, or what of it is missing: somebody may clean up there.
func (s *set) fill() error {
	s.laying.Lock()
	defer s.laying.Unlock()
	for _, dir := range []string{filepath.Dir(s.dir), s.dir, filepath.Join(s.dir, binName), filepath.Join(s.dir, realName), filepath.Join(s.dir, tempName), filepath.Join(s.dir, homeName)} {
		if err := directory(dir); err != nil {
			return fmt.Errorf("lay out the directory of warm servers: %w", err)
		}
	}
	for link, target := range s.links() {
		if found, err := os.Readlink(link); err == nil && found == target {
			continue
		}
		if err := errors.Join(os.RemoveAll(link), os.Symlink(target, link)); err != nil {
			return fmt.Errorf("lay out the directory of warm servers: %w", err)
		}
	}
	return s.unpack()
}

// links are the stand-ins, and what they stand in for.
func (s *set) links() map[string]string {
	links := map[string]string{}
	for _, k := range kinds() {
		links[filepath.Join(s.dir, binName, nameOf(k))] = s.programs.Standin
		links[filepath.Join(s.dir, realName, nameOf(k))] = s.programs.Python
	}
	return links
}

// whole reports whether a run would find the programs.
func (s *set) whole() bool {
	for link, target := range s.links() {
		if found, err := os.Readlink(link); err != nil || found != target {
			return false
		}
	}
	return true
}

// layOut makes the directory ready for the start of a server.
func (s *set) layOut(k kind) error {
	if err := s.fill(); err != nil {
		return err
	}
	// What earlier ones have left is of no use.
	return errors.Join(os.RemoveAll(s.socket(k)), os.RemoveAll(s.temporary(k)), os.Mkdir(s.temporary(k), 0o700))
}

func directory(path string) error {
	if err := os.Mkdir(path, 0o700); !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// unpack writes what of the servers' source is missing or is not what is embedded here.
func (s *set) unpack() error {
	return fs.WalkDir(source, "server", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return directory(filepath.Join(s.dir, path))
		}
		content, err := source.ReadFile(path)
		if err != nil {
			return err
		}
		path = filepath.Join(s.dir, path)
		info, err := os.Lstat(path)
		if err == nil && !info.Mode().IsRegular() {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
		// A disk that was full, or somebody else, has left another one.
		if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, content) {
			return nil
		}
		return os.WriteFile(path, content, 0o600)
	})
}
