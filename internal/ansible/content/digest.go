package content

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxHashed is the size from which on a file is told by its size and time of
// change. Ansible content is small; what is larger lies there for copying.
const maxHashed = 1 << 20

// Digest is a hexadecimal SHA-256 of files and directories, with all that is
// below them: names, contents, and which are executable. The order of the paths
// does not matter, nor where they lie. Hidden entries and __pycache__ are left
// out, symbolic links are followed, and a path that does not exist counts as
// empty: content may name places to search that need not be there.
func Digest(paths ...string) (string, error) {
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	var parts []string
	for _, path := range paths {
		d := digest{sum: sha256.New(), entered: map[string]bool{}}
		if err := d.add(path, "."); err != nil {
			return "", fmt.Errorf("read the content of %q: %w", path, err)
		}
		parts = append(parts, hex.EncodeToString(d.sum.Sum(nil)))
	}
	slices.Sort(parts)
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:]), nil
}

// digest is the sum of one tree.
type digest struct {
	sum hash.Hash
	// entered are the directories that lead to the place at work, so that a link
	// to one of them is not followed for ever.
	entered map[string]bool
}

// add takes up what stands at path, under its name within the tree.
func (d *digest) add(path, name string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // A link without target is as good as no file.
	case err != nil:
		return err
	case info.IsDir():
		return d.addDir(path, name)
	case info.Mode().IsRegular():
		return d.addFile(path, name, info)
	}
	return nil
}

func (d *digest) addDir(path, name string) error {
	place, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if d.entered[place] {
		return nil
	}
	d.entered[place] = true
	defer delete(d.entered, place)
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	d.note("dir", name, "")
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") || entry.Name() == "__pycache__" {
			continue
		}
		if err := d.add(filepath.Join(path, entry.Name()), filepath.Join(name, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (d *digest) addFile(path, name string, info fs.FileInfo) error {
	kind := "file"
	if info.Mode()&0o111 != 0 {
		kind = "program"
	}
	if info.Size() > maxHashed {
		d.note(kind, name, fmt.Sprintf("%d bytes of %s", info.Size(), info.ModTime().UTC()))
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return err
	}
	d.note(kind, name, hex.EncodeToString(sum.Sum(nil)))
	return nil
}

func (d *digest) note(kind, name, what string) {
	// A hash takes every write; quoting keeps the fields apart.
	_, _ = fmt.Fprintf(d.sum, "%s %q %q\n", kind, name, what)
}
