package describe

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"helm.sh/helm/v4/pkg/ignore"
)

// File is a file of a chart. Its name is relative to the chart, with slashes.
type File struct {
	Name string
	Data []byte
}

const (
	// maxChart bounds the bytes of a chart's files, once all archives in it are unpacked.
	maxChart = 32 << 20
	// maxEntries bounds their number. An empty file has no bytes, but an entry.
	maxEntries = 20_000
)

// budget is the size that is left for the rest of a chart.
type budget struct{ bytes, entries int64 }

// take takes a file from the budget, before the file is read. size is from the file system or the
// archive.
func (b *budget) take(size int64) error {
	b.entries--
	if b.bytes -= size; b.bytes < 0 || b.entries < 0 {
		return fmt.Errorf("it has more than %d MiB or %d files, unpacked: is it a chart? Leave out what Helm does not need, by .helmignore", maxChart>>20, maxEntries)
	}
	return nil
}

// readFiles returns the files of the chart at the path: those of a directory that .helmignore
// does not leave out, or the one of an archive. It returns an error if one is not a regular file: a
// link may lead to a file in a home directory, which would get into the project and its image.
func readFiles(name string) (files []File, isArchive bool, err error) {
	left := &budget{maxChart, maxEntries}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("name the directory, or the .tgz, of a chart: %w", err)
	case info.IsDir() && !isRegular(name+"/Chart.yaml"):
		return nil, false, errors.New("name the directory, or the .tgz, of a chart: this directory has no regular file Chart.yaml")
	case info.IsDir():
		files, err = readDirectory(name, left)
		return files, false, err
	case !info.Mode().IsRegular():
		return nil, false, errors.New("name the directory, or the .tgz, of a chart: this is neither a directory nor a regular file")
	}
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false, err
	}
	data, err := read1(file, left)
	if err != nil {
		return nil, false, err
	}
	return []File{{path.Base(name), data}}, true, inspectArchive(data, left)
}

func isRegular(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

func readDirectory(name string, left *budget) (files []File, err error) {
	root, err := os.OpenRoot(name) // It follows no link that leads out of the directory.
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	rules, err := ignored(root, left)
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := entry.Info()
		switch {
		case err != nil:
			return err
		case rules.Ignore(name, info) && entry.IsDir():
			return fs.SkipDir
		case rules.Ignore(name, info) || entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			return irregular(root, name, entry.Type())
		}
		data, err := readIn(root, name, left)
		if err == nil && isSubchart(name) {
			err = inspectArchive(data, left)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		files = append(files, File{name, data})
		return nil
	})
	return files, err
}

// ignored returns the rules of .helmignore, and Helm's own.
func ignored(root *os.Root, left *budget) (*ignore.Rules, error) {
	rules := ignore.Empty()
	switch info, err := root.Lstat(ignore.HelmIgnore); {
	case err == nil && !info.Mode().IsRegular():
		return nil, irregular(root, ignore.HelmIgnore, info.Mode())
	case err == nil:
		text, err := readIn(root, ignore.HelmIgnore, left)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ignore.HelmIgnore, err)
		}
		if rules, err = ignore.Parse(bytes.NewReader(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", ignore.HelmIgnore, err)
		}
	}
	rules.AddDefaults()
	return rules, nil
}

func readIn(root *os.Root, name string, left *budget) ([]byte, error) {
	// A file that became a FIFO since it was looked at would wait for a writer.
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return read1(file, left)
}

// read1 reads a file, if it is a regular one and within the budget, and closes it.
func read1(file *os.File, left *budget) (data []byte, err error) {
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	if err := left.take(info.Size()); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, info.Size())) // It may grow while it is read.
}

// irregular returns the error for an entry that is neither a file nor a directory.
func irregular(root *os.Root, name string, mode fs.FileMode) error {
	if mode&fs.ModeSymlink == 0 {
		return fmt.Errorf("%s is not a regular file: remove it from the chart, or leave it out by .helmignore", name)
	}
	target, err := root.Readlink(name)
	if err != nil {
		target = "elsewhere"
	}
	return fmt.Errorf("%s is a link to %s, and only the regular files of a chart are taken: put a copy of what it means in its place, or leave it out by .helmignore", name, target)
}

// isSubchart reports whether Helm unpacks the file of a chart.
func isSubchart(name string) bool {
	return path.Ext(name) == ".tgz" && slices.Contains(strings.Split(path.Dir(name), "/"), "charts")
}

// inspectArchive returns an error if an archive of a chart has anything but regular files, names
// that lead out of it, or more than the budget, archives within it included.
func inspectArchive(data []byte, left *budget) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("it is not an archive of a chart, as helm package makes one: %w", err)
	}
	files := tar.NewReader(unzipped)
	for {
		header, err := files.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("it is not an archive of a chart, as helm package makes one: %w", err)
		}
		if err := inspectEntry(header, left); err != nil {
			return err
		}
		if !isSubchart(header.Name) {
			continue // Next skips its content.
		}
		inner, err := io.ReadAll(io.LimitReader(files, header.Size))
		if err == nil {
			err = inspectArchive(inner, left)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
	}
}

func inspectEntry(header *tar.Header, left *budget) error {
	const again = "pack the chart again with helm package, from a directory with regular files alone"
	name := strings.ReplaceAll(header.Name, `\`, "/")
	switch header.Typeflag {
	case tar.TypeXGlobalHeader, tar.TypeDir:
		return left.take(0)
	case tar.TypeReg:
	case tar.TypeSymlink, tar.TypeLink:
		return fmt.Errorf("%s is a link to %s, and only regular files are taken: %s", header.Name, header.Linkname, again)
	default:
		return fmt.Errorf("%s is not a regular file: %s", header.Name, again)
	}
	if path.IsAbs(name) || slices.Contains(strings.Split(name, "/"), "..") {
		return fmt.Errorf("the name %q leads out of the chart: %s", header.Name, again)
	}
	return left.take(header.Size)
}
