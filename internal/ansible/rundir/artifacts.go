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

// timeLayout sorts as text the way it sorts as time.
const timeLayout = "20060102T150405.000000000Z"

// artifactPattern is what artifactName makes. Only such directories are ever
// rotated away.
var artifactPattern = regexp.MustCompile(`^\d{8}T\d{6}\.\d{9}Z-[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

func artifactName(now time.Time, id string) string {
	return now.UTC().Format(timeLayout) + "-" + id
}

// File is a file of a run's artifact that is being written. Its bytes count
// against what the artifact may take. The files of one artifact are not to be written
// at the same time.
type File struct {
	dir  *Dir
	file *os.File
	size int64
}

// Create makes a file in the run's artifact. What is written there is kept, so
// it must hold no secret.
func (d *Dir) Create(name string) (*File, error) {
	if !element.MatchString(name) {
		return nil, fmt.Errorf("create artifact: %q is no plain name", name)
	}
	if d.room < charge(0) {
		return nil, fmt.Errorf("create artifact %q: %w", name, ErrNoRoom)
	}
	file, err := createPrivate(d.artifacts, filepath.Join(d.artifact, name), 0o600)
	if err != nil {
		return nil, fmt.Errorf("create artifact %q: %w", name, err)
	}
	d.room -= charge(0)
	return &File{dir: d, file: file}, nil
}

// WriteFile makes a whole file in the run's artifact, or none.
func (d *Dir) WriteFile(name string, content []byte) error {
	f, err := d.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		d.room += charge(f.size)
		return errors.Join(fmt.Errorf("write artifact %q: %w", name, err), d.artifacts.Remove(filepath.Join(d.artifact, name)))
	}
	return nil
}

// Write writes all of b, or nothing and says why: ErrNoRoom, or the error of a
// full disk.
func (f *File) Write(b []byte) (int, error) {
	more := charge(f.size+int64(len(b))) - charge(f.size)
	if more > f.dir.room {
		return 0, ErrNoRoom
	}
	n, err := f.file.Write(b)
	if err != nil {
		_, seekErr := f.file.Seek(f.size, 0)
		return 0, errors.Join(err, f.file.Truncate(f.size), seekErr)
	}
	f.dir.room -= more
	f.size += int64(n)
	return n, nil
}

// Close ends the writing.
func (f *File) Close() error { return f.file.Close() }

// Room is how many bytes may still be written to the run's artifact.
func (d *Dir) Room() int64 { return d.room }

// Close ends the use of the directory: everything but the artifacts is removed,
// and of those all but the newest keep; all stay, within the limit of the root,
// when keep is 0. It must be called once, after the run's last process is gone.
func (d *Dir) Close(keep int) error {
	if err := errors.Join(d.root.settle(d.uid, d.artifacts, keep), d.discard()); err != nil {
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

// artifactNames lists the artifacts, oldest first.
func artifactNames(artifacts *os.Root) ([]string, error) {
	entries, err := fs.ReadDir(artifacts.FS(), ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // Somebody removed the directory that is open here.
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

// measure finds the artifacts of a CR, oldest first, and what each takes.
func measure(artifacts *os.Root) ([]artifact, error) {
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
				a.size += charge(info.Size())
			} else {
				a.size += charge(0)
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
