package source

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/suggest"
)

// extensions are those of files that Ansible reads as YAML, in its order.
var extensions = []string{".yml", ".yaml", ".json", ""} //nolint:gochecknoglobals // A constant.

func isVaulted(text []byte) bool { return bytes.HasPrefix(text, []byte("$ANSIBLE_VAULT;")) }

// readOne returns the first document of a file, nil if there is none.
func (w *walker) readOne(path string) *yaml.Node {
	documents, fault := ReadYAML(path)
	if fault != nil {
		w.unit.Faults = append(w.unit.Faults, *fault)
	}
	if len(documents) == 0 {
		return nil
	}
	return follow(documents[0])
}

// mainFiles returns the files of a part of a role, such as tasks: main.yml, or for variables
// all files of the directory main.
func mainFiles(dir, name string) []string {
	for _, extension := range extensions {
		path := filepath.Join(dir, name+extension)
		info, err := os.Stat(path)
		switch {
		case err != nil:
		case info.Mode().IsRegular():
			return []string{path}
		case info.IsDir():
			return Below(path, extensions[:3]...)
		}
	}
	return nil
}

// findRole returns the directory of a role and the collection it is in, if any.
func (w *walker) findRole(name string, from place) (dir, collection string) {
	if filepath.IsAbs(name) {
		return existing(w.search.absolute("", name)), ""
	}
	if parts := strings.Split(name, "."); len(parts) >= 3 {
		for _, tree := range w.search.Trees {
			if dir := existing(filepath.Join(tree, parts[0], parts[1], "roles", filepath.Join(parts[2:]...))); dir != "" {
				return dir, parts[0] + "." + parts[1]
			}
		}
	}
	for _, collection := range from.collections {
		namespace, rest, _ := strings.Cut(collection, ".")
		for _, tree := range w.search.Trees {
			if dir := existing(filepath.Join(tree, namespace, rest, "roles", name)); dir != "" {
				return dir, collection
			}
		}
	}
	for _, parent := range w.roleParents(from) {
		if dir := existing(filepath.Join(parent, name)); dir != "" {
			return dir, from.collectionOf(dir)
		}
	}
	return "", ""
}

// roleParents returns the directories in which roles are looked for, in Ansible's order: the roles beside the
// playbook, the search path of the run, the directory of the role that names it, and the playbook's own.
func (w *walker) roleParents(from place) (dirs []string) {
	if from.play != "" {
		dirs = append(dirs, filepath.Join(from.play, "roles"))
	}
	dirs = append(dirs, w.search.Roles...)
	if from.roleDir != "" {
		dirs = append(dirs, filepath.Dir(from.roleDir))
	}
	if from.play != "" {
		dirs = append(dirs, from.play)
	}
	return dirs
}

// meantRole says which role may be meant by a name that is not there.
func (w *walker) meantRole(name string, from place) string {
	var known []string
	for _, parent := range w.roleParents(from) {
		entries, _ := os.ReadDir(parent) // Without it there is no suggestion.
		for _, entry := range entries {
			if entry.IsDir() {
				known = append(known, entry.Name())
			}
		}
	}
	return suggest.DidYouMean(name, known)
}

func existing(dir string) string {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return filepath.Clean(dir)
	}
	return ""
}

// FindFile returns the file of that name that Ansible would use for the task, "" if there is
// none: in the part of the task's role, such as templates, and beside the task.
func FindFile(t *Task, part, name string) string {
	name = t.here(name)
	for _, dir := range placesOf(t, part, name) {
		if path := regular(filepath.Join(dir, name)); path != "" {
			return path
		}
	}
	return ""
}

// placesOf returns the directories in which Ansible looks for a file of the task.
func placesOf(t *Task, part, name string) []string {
	if filepath.IsAbs(name) {
		return []string{""}
	}
	here := filepath.Dir(t.File)
	places := []string{filepath.Join(here, part), here, filepath.Join(here, "..", part)}
	if t.RoleDir != "" {
		places = append([]string{filepath.Join(t.RoleDir, part), t.RoleDir}, places...)
	}
	return places
}

func regular(path string) string {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return filepath.Clean(path)
	}
	return ""
}

func describe(n *yaml.Node) string {
	return "found " + map[yaml.Kind]string{yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list", yaml.ScalarNode: "a text"}[n.Kind]
}
