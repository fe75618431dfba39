package files

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// Digest returns a hexadecimal SHA-256 of files and directories: names, contents, and which
// files are executable. The order of the paths and their parent directories do not matter.
// Digest leaves out hidden entries and __pycache__, and follows symbolic links. A path that
// does not exist counts as empty, because content may name search paths that do not exist.
func Digest(paths ...string) (string, error) { return DigestWithout(nil, paths...) }

// DigestWithout is Digest without the entries of directories for which skip is true.
func DigestWithout(skip func(path string, isDir bool) bool, paths ...string) (string, error) {
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	var parts []string
	for _, path := range paths {
		d := digest{sha256.New()}
		if err := walkWithout(skip, path, d.add); err != nil {
			return "", fmt.Errorf("read the content of %q: %w", path, err)
		}
		parts = append(parts, hex.EncodeToString(d.sum.Sum(nil)))
	}
	slices.Sort(parts)
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:]), nil
}

// ChangedSince returns the files below a path that are newer than a time. It reads them like
// Digest, without those for which skip is true. A directory is newer when a file in it has come or
// gone.
func ChangedSince(when time.Time, skip func(path string, isDir bool) bool, path string) (changed []string) {
	_ = walkWithout(skip, path, func(path, _ string, info fs.FileInfo) error { // The digest reports files that cannot be read.
		if info.ModTime().After(when) {
			changed = append(changed, path)
		}
		return nil
	})
	return changed
}

// digest computes the digest of one tree.
type digest struct{ sum hash.Hash }

func (d digest) add(path, name string, info fs.FileInfo) error {
	if info.IsDir() {
		d.write("dir", name, "")
		return nil
	}
	kind := "file"
	if info.Mode()&0o111 != 0 {
		kind = "program"
	}
	if info.Size() > maxReadBytes {
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

func (d digest) write(kind, name, what string) {
	// Writing to a hash never fails. Quoting separates the fields.
	_, _ = fmt.Fprintf(d.sum, "%s %q %q\n", kind, name, what)
}
