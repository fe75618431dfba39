package once

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// quiet is how long nothing more must change before a run begins: an editor writes a file in
// several steps.
const quiet = 50 * time.Millisecond

// files tells when a file of the content changes.
type files struct {
	watcher *fsnotify.Watcher
	// only is the name of the one file that counts in a directory without content: the CR's.
	only map[string]string
}

func newFiles() (*files, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch files: %w", err)
	}
	return &files{watcher: watcher, only: map[string]string{}}, nil
}

func (f *files) close() { _ = f.watcher.Close() } // Nothing is left to report.

// watch adds the directories of the content, and those that are new in them.
func (f *files) watch(o Options, content []string) error {
	for _, path := range content {
		if err := f.add(path); err != nil {
			return err
		}
	}
	if o.File == "" || o.File == "-" {
		return nil
	}
	path, err := filepath.Abs(o.File)
	if err != nil {
		return fmt.Errorf("watch %s: %w", o.File, err)
	}
	dir, name := filepath.Split(path)
	if dir = filepath.Clean(dir); slices.Contains(f.watcher.WatchList(), dir) {
		return nil
	}
	f.only[dir] = name
	if err := f.watcher.Add(dir); err != nil {
		return fmt.Errorf("watch %s: %w", o.File, err)
	}
	return nil
}

func (f *files) add(root string) error {
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission): // It was removed, or runs cannot read it either.
			return nil
		case err != nil:
			return err
		case !entry.IsDir():
			return nil
		case path != root && isHidden(path):
			return fs.SkipDir
		}
		delete(f.only, path)
		return f.watcher.Add(path)
	})
	if err != nil {
		return fmt.Errorf("watch the files below %s: %w", root, err)
	}
	return nil
}

// isHidden reports whether the name is one that no content has: .git, and files that editors write
// beside a file.
func isHidden(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || strings.HasPrefix(name, "#") || name == "4913" || name == "__pycache__"
}

// changed waits until a file has changed and nothing more does, and returns its path. ok is
// false when the context has ended.
func (f *files) changed(ctx context.Context) (path string, ok bool) {
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return "", false
		case <-settled:
			return path, true
		case event := <-f.watcher.Events:
			only := f.only[filepath.Dir(event.Name)]
			if event.Op == fsnotify.Chmod || isHidden(event.Name) || only != "" && only != filepath.Base(event.Name) {
				continue
			}
			path, settled = event.Name, time.After(quiet)
		case err := <-f.watcher.Errors: // Events were lost, so anything may have changed.
			path, settled = fmt.Sprintf("something (%v)", err), time.After(quiet)
		}
	}
}
