package source

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/watches"
)

// Search says where roles and collections are.
type Search struct {
	// Dir is the project's directory, absolute.
	Dir string
	// Roles are directories with roles; Trees are directories named ansible_collections.
	Roles, Trees []string
	// Here returns where an absolute path of the content is; nil if all are where they say.
	Here func(path string) string
}

// absolute returns the path of a file that another in dir names.
func (s Search) absolute(dir, name string) string {
	switch {
	case !filepath.IsAbs(name):
		return filepath.Join(dir, name)
	case s.Here != nil:
		return s.Here(name)
	default:
		return name
	}
}

// place is where a file stands that names others.
type place struct {
	base        string // the directory of the file
	play        string // the directory of the playbook; "" in a run of a role
	roleDir     string
	collection  string
	collections []string
	parent      *Task
	handlers    bool
	unsure      bool // of the tasks in it
}

func (p place) collectionOf(dir string) string {
	if p.roleDir != "" && filepath.Dir(p.roleDir) == filepath.Dir(dir) {
		return p.collection
	}
	return ""
}

type walker struct {
	search Search
	unit   *Unit
	seen   map[string]bool
	// inPlaybook is set for a playbook, whose directory is the unit's.
	inPlaybook bool
	// metas are the meta files of roles: one that is included by several tasks has the same
	// collections each time.
	metas map[string]*yaml.Node
	// later are includes whose names have variables. They wait until the rest is walked, so
	// that all definitions are known.
	later []func()
}

// Walk returns a unit for the content of each watch, and one for each finalizer with content
// of its own. The unit of a chart has no content: this package reads Ansible's.
func Walk(list []watches.Watch, search Search) []*Unit {
	var units []*Unit
	for _, watch := range list {
		units = append(units, walkOne(watch, watch.Content, search, false))
		if f := watch.Finalizer; f != nil && f.Content != watch.Content {
			units = append(units, walkOne(watch, f.Content, search, true))
		}
	}
	return units
}

func walkOne(watch watches.Watch, what watches.Content, search Search, finalizing bool) *Unit {
	w := newWalker(watch, what, search, finalizing)
	for len(w.later) > 0 { // Files that they include may set other ones aside.
		include := w.later[0]
		w.later = w.later[1:]
		include()
	}
	return w.unit
}

func newWalker(watch watches.Watch, what watches.Content, search Search, finalizing bool) *walker {
	w := &walker{search: search, unit: &Unit{Watch: watch, Finalizing: finalizing}, seen: map[string]bool{}, metas: map[string]*yaml.Node{}}
	if search.Roles == nil { // Only Ansible knows its search path.
		w.search.Roles = []string{filepath.Join(search.Dir, "roles")}
	}
	if what.Playbook != "" {
		w.inPlaybook, w.unit.Dir = true, filepath.Dir(what.Playbook)
		w.search.Trees = slices.Concat([]string{Beside(what.Playbook)}, search.Trees)
		w.unit.Entry = append(w.unit.Entry, reader.Content{Kind: "playbook", Path: what.Playbook})
		for _, dir := range []string{"group_vars", filepath.Join("host_vars", "localhost")} {
			for _, path := range Below(filepath.Join(w.unit.Dir, dir), extensions[:3]...) {
				w.variableFile(path, Included)
			}
		}
		w.playbook(what.Playbook)
		return w
	}
	name := what.Role
	if name == "" { // A fault of the watch, or content that is not Ansible's.
		return w
	}
	if what.RolesPath != "" {
		name = filepath.Join(what.RolesPath, what.Role)
		w.search.Roles = slices.Concat([]string{what.RolesPath}, w.search.Roles)
	}
	dir, collection := w.findRole(name, place{base: search.Dir})
	w.unit.Dir = dir
	w.unit.Entry = append(w.unit.Entry, reader.Content{Kind: "role", Path: dir, Role: name})
	w.role(dir, collection, roleParts{}, place{base: search.Dir})
	return w
}

// Beside returns the directory beside a playbook in which Ansible looks for collections first.
func Beside(playbook string) string {
	return filepath.Join(filepath.Dir(playbook), "collections", "ansible_collections")
}

// once reports whether a file is walked for the first time.
func (w *walker) once(path string) bool {
	if w.seen[path] {
		return false
	}
	w.seen[path] = true
	return true
}

// roleParts name other files than main.
type roleParts struct{ tasks, vars, defaults, handlers string }

func (p roleParts) or(name string) string {
	if name == "" {
		return "main"
	}
	return trimExtension(name)
}

func trimExtension(name string) string {
	switch extension := filepath.Ext(name); extension {
	case ".yml", ".yaml", ".json":
		return name[:len(name)-len(extension)]
	default:
		return name
	}
}

// role walks a role with its dependencies.
func (w *walker) role(dir, collection string, parts roleParts, from place) {
	if dir == "" {
		return
	}
	at := place{play: from.play, roleDir: dir, collection: collection, parent: from.parent, unsure: from.unsure}
	if collection != "" {
		at.collections = []string{collection}
	}
	for _, path := range mainFiles(filepath.Join(dir, "meta"), "main") {
		first := w.once(path)
		if first {
			w.metas[path] = w.readOne(path)
		}
		at.collections = append(at.collections, scalars(Field(w.metas[path], "collections"))...)
		if first {
			w.roles(Field(w.metas[path], "dependencies"), at, path)
		}
	}
	w.variables(filepath.Join(dir, "defaults"), parts.or(parts.defaults), Default)
	w.variables(filepath.Join(dir, "vars"), parts.or(parts.vars), RoleVar)
	for _, path := range mainFiles(filepath.Join(dir, "tasks"), parts.or(parts.tasks)) {
		w.taskFile(path, at)
	}
	at.handlers = true
	for _, path := range mainFiles(filepath.Join(dir, "handlers"), parts.or(parts.handlers)) {
		w.taskFile(path, at)
	}
}

func (w *walker) variables(dir, name string, how How) {
	for _, path := range mainFiles(dir, name) {
		w.variableFile(path, how)
	}
}

func (w *walker) variableFile(path string, how How) {
	if !w.once(path) {
		return
	}
	if text, err := os.ReadFile(path); err == nil && isVaulted(text) {
		w.unit.Unknown = append(w.unit.Unknown, Fault{Position{path, 1, 1}, "the file is encrypted by ansible-vault"})
	}
	w.define(w.readOne(path), path, how, nil)
}

// roles walks the elements of a list of roles: names, or mappings with role and vars.
func (w *walker) roles(list *yaml.Node, from place, file string) {
	from.base = filepath.Dir(file)
	for _, element := range Items(list) {
		element = follow(element)
		name := Scalar(element)
		from := from
		from.unsure = from.unsure || Field(element, "when") != nil || Field(element, "tags") != nil
		if element.Kind == yaml.MappingNode {
			name = cmp.Or(Scalar(element, "role"), Scalar(element, "name"))
			w.define(Field(element, "vars"), file, PlayVar, nil)
			w.texts(element, file, "role", nil, nil)
		}
		if dir, collection := w.findRole(name, from); dir != "" {
			w.role(dir, collection, roleParts{}, from)
		}
	}
}

// playbook walks the plays of a playbook.
func (w *walker) playbook(path string) {
	if !w.once(path) {
		return
	}
	for _, play := range Items(w.readOne(path)) {
		w.play(follow(play), path)
	}
}

func (w *walker) play(play *yaml.Node, path string) {
	at := place{base: filepath.Dir(path), play: filepath.Dir(path), collections: scalars(Field(play, "collections"))}
	for _, key := range []string{"import_playbook", "ansible.builtin.import_playbook"} {
		if name := Scalar(play, key); name != "" {
			w.playbook(w.search.absolute(at.base, name))
		}
	}
	w.define(Field(play, "vars"), path, PlayVar, nil)
	w.variableFiles(Field(play, "vars_files"), at.base)
	for _, key := range []string{"environment", "remote_user", "become_user", "hosts", "vars_files", "module_defaults"} {
		w.texts(Field(play, key), path, key, nil, nil)
	}
	for _, n := range Each(Field(play, "hosts")) {
		if text := Scalar(n); !templated(text) {
			w.unit.Hosts = append(w.unit.Hosts, Host{Place(path, n), text})
		}
	}
	if defaults := Field(play, "module_defaults"); defaults != nil { // They count for its tasks as those of a block do.
		at.parent = &Task{Keys: map[string]*yaml.Node{"module_defaults": defaults}}
	}
	w.roles(Field(play, "roles"), at, path)
	for _, key := range []string{"pre_tasks", "tasks", "post_tasks", "handlers"} {
		at.handlers = key == "handlers"
		w.tasks(Field(play, key), path, at)
	}
}

// variableFiles reads the files of vars_files. An element that is a list has alternatives.
func (w *walker) variableFiles(n *yaml.Node, base string) {
	for _, name := range scalars(n) {
		names, _ := w.substituted(name, &Task{}, 0)
		for _, name := range names {
			if file := regular(w.search.absolute(base, name)); file != "" {
				w.variableFile(file, Included)
			}
		}
	}
	for _, element := range Items(n) {
		if Items(element) != nil {
			w.variableFiles(element, base)
		}
	}
}

// scalars returns the texts of a list, or the one text that stands in its place.
func scalars(n *yaml.Node) (found []string) {
	for _, element := range Each(n) {
		if text := Scalar(element); text != "" {
			found = append(found, text)
		}
	}
	return found
}
