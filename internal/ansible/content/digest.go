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

// maxHashedBytes is the maximum size of a file that is hashed. A larger file is represented
// by its size and modification time; it is usually a file that a role copies.
const maxHashedBytes = 1 << 20

// Digest returns a hexadecimal SHA-256 of files and directories: names, contents, and which
// files are executable. The order of the paths and their parent directories do not matter.
// Digest leaves out hidden entries and __pycache__, and follows symbolic links. A path that
// does not exist counts as empty, because content may name search paths that do not exist.
func Digest(paths ...string) (string, error) {
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	var parts []string
	for _, path := range paths {
		d := digest{sum: sha256.New(), openDirs: map[string]bool{}}
		if err := d.add(path, "."); err != nil {
			return "", fmt.Errorf("read the content of %q: %w", path, err)
		}
		parts = append(parts, hex.EncodeToString(d.sum.Sum(nil)))
	}
	slices.Sort(parts)
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:]), nil
}

// digest computes the digest of one tree.
type digest struct {
	sum hash.Hash
	// openDirs are the directories on the way to the current one. A link to one of them is
	// not followed, because it would never end.
	openDirs map[string]bool
}

// add adds the file or directory at path, under its name in the tree.
func (d *digest) add(path, name string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // Such as a link without a target.
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
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if d.openDirs[resolved] {
		return nil
	}
	d.openDirs[resolved] = true
	defer delete(d.openDirs, resolved)
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	d.write("dir", name, "")
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
	if info.Size() > maxHashedBytes {
		d.write(kind, name, fmt.Sprintf("%d bytes of %s", info.Size(), info.ModTime().UTC()))
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
	d.write(kind, name, hex.EncodeToString(sum.Sum(nil)))
	return nil
}

func (d *digest) write(kind, name, what string) {
	// Writing to a hash never fails. Quoting separates the fields.
	_, _ = fmt.Fprintf(d.sum, "%s %q %q\n", kind, name, what)
}
