package check

import (
	"path/filepath"
	"strings"
)

// links gives each file one name, whichever symbolic links lead to it: a directory of roles may
// be linked beside the playbooks.
type links struct {
	dir   string            // the project's
	names map[string]string // by the name that was asked for
	first map[string]string // by the file itself, for those outside of the project
}

func newLinks(dir string) *links {
	return &links{dir: dir, names: map[string]string{}, first: map[string]string{}}
}

// name returns the file's own name if it is in the project, else the first by which it was asked
// for.
func (l *links) name(file string) string {
	if known, ok := l.names[file]; ok {
		return known
	}
	name := file
	if target, err := filepath.EvalSymlinks(file); err == nil {
		root, _ := filepath.EvalSymlinks(l.dir)
		if path, err := filepath.Rel(root, target); err == nil && path != ".." && !strings.HasPrefix(path, "../") {
			name = filepath.Join(l.dir, path)
		} else if l.first[target] == "" {
			l.first[target] = file
		} else {
			name = l.first[target]
		}
	}
	l.names[file] = name
	return name
}
