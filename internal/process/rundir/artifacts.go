package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// timeLayout gives texts whose order is that of the times.
const timeLayout = "20060102T150405.000000000Z"

// artifactPattern matches the results of artifactName. Only such directories are removed
// as old artifacts.
var artifactPattern = regexp.MustCompile(`^\d{8}T\d{6}\.\d{9}Z-[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

func artifactName(now time.Time, id string) string {
	return now.UTC().Format(timeLayout) + "-" + id
}

// File is an open file of a run's artifact. Its size counts towards the limit of the
// artifact. The files of one artifact must not be written concurrently.
type File struct {
	dir  *Dir
	file *os.File
	size int64
}

// Create makes a file in the run's artifact. The file is kept, so it must not hold secrets.
func (d *Dir) Create(name string) (*File, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("create artifact: invalid name %q", name)
	}
	if d.remaining < sizeOnDisk(0) {
		return nil, fmt.Errorf("create artifact %q: %w", name, ErrArtifactLimit)
	}
	file, err := createPrivate(d.artifacts, filepath.Join(d.artifact, name), 0o600)
	if err != nil {
		return nil, fmt.Errorf("create artifact %q: %w", name, err)
	}
	d.remaining -= sizeOnDisk(0)
	return &File{dir: d, file: file}, nil
}

// WriteFile makes a file with this content in the run's artifact. After an error there is
// no file.
func (d *Dir) WriteFile(name string, content []byte) error {
	f, err := d.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		d.remaining += sizeOnDisk(f.size)
		return errors.Join(fmt.Errorf("write artifact %q: %w", name, err), d.artifacts.Remove(filepath.Join(d.artifact, name)))
	}
	return nil
}

// Write writes all of b, or nothing and returns ErrArtifactLimit or the disk's error.
func (f *File) Write(b []byte) (int, error) {
	more := sizeOnDisk(f.size+int64(len(b))) - sizeOnDisk(f.size)
	if more > f.dir.remaining {
		return 0, ErrArtifactLimit
	}
	n, err := f.file.Write(b)
	if err != nil {
		_, seekErr := f.file.Seek(f.size, 0)
		return 0, errors.Join(err, f.file.Truncate(f.size), seekErr)
	}
	f.dir.remaining -= more
	f.size += int64(n)
	return n, nil
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Remaining returns how many bytes may still be written to the run's artifact.
func (d *Dir) Remaining() int64 { return d.remaining }

// Close removes the run's directory except for the newest artifacts, as many as keep; 0
// keeps all that the limit of the Root allows. It must be called once, after the run's last
// process has ended.
func (d *Dir) Close(keep int) error {
	if err := errors.Join(d.root.updateArtifacts(d.uid, d.artifacts, keep), d.release()); err != nil {
		return fmt.Errorf("close run directory of %q: %w", d.uid, err)
	}
	return nil
}

// rotate removes the oldest artifacts until keep are left; 0 keeps all.
func rotate(artifacts *os.Root, keep int) error {
	if keep <= 0 {
		return nil
	}
	names, err := artifactNames(artifacts)
	var errs []error
	for _, name := range names[:max(0, len(names)-keep)] {
		errs = append(errs, artifacts.RemoveAll(name))
	}
	return errors.Join(append(errs, err)...)
}

// artifactNames returns the names of the artifacts, oldest first.
func artifactNames(artifacts *os.Root) ([]string, error) {
	entries, err := fs.ReadDir(artifacts.FS(), ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // The open directory was removed.
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && artifactPattern.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// listArtifacts returns the artifacts of a CR with their sizes, oldest first.
func listArtifacts(artifacts *os.Root) ([]artifact, error) {
	names, err := artifactNames(artifacts)
	if err != nil {
		return nil, err
	}
	var found []artifact
	for _, name := range names {
		a := artifact{name: name}
		err := fs.WalkDir(artifacts.FS(), name, func(_ string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			if info.Mode().IsRegular() {
				a.size += sizeOnDisk(info.Size())
			} else {
				a.size += sizeOnDisk(0)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		found = append(found, a)
	}
	return found, nil
}
