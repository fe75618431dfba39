package leftovers

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Directories lists what is in a run directory beside that of the resource, and
// what is left of runs. uid is "" where there is no resource.
func Directories(runDir, uid string) []string {
	homes, err := os.ReadDir(runDir)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, home := range homes {
		if strings.HasPrefix(home.Name(), ".") {
			continue
		}
		if home.Name() != uid {
			found = append(found, "the directory of a resource that is gone: "+home.Name())
		}
		if _, err := os.Lstat(filepath.Join(runDir, home.Name(), "run")); err == nil {
			found = append(found, "the directory of a run: "+home.Name())
		}
	}
	return found
}

// Holding lists the files below dir that hold the text.
func Holding(dir, text string) []string {
	var found []string
	root, err := os.OpenRoot(dir)
	if err != nil {
		return []string{err.Error()}
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error { // What went meanwhile holds nothing.
		if err != nil || !entry.Type().IsRegular() {
			return nil //nolint:nilerr // The same.
		}
		content, err := root.ReadFile(path)
		if err == nil && bytes.Contains(content, []byte(text)) {
			found = append(found, "a token of a run is in "+filepath.Join(dir, path))
		}
		return nil
	})
	return found
}
