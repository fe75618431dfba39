package source

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// files writes files of a project, and returns its directory.
func files(t *testing.T, all map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	scratch.Write(t, dir, all)
	return dir
}

func TestReadYAML(t *testing.T) {
	for name, test := range map[string]struct {
		text      string
		documents int
		line      int // of a fault; 0 is none
	}{
		"several documents": {"a: 1\n---\nb: 2\n", 2, 0},
		"no document":       {"# nothing\n", 0, 0},
		"what cannot be read is read as far as it can": {"a: 1\n---\nb:\n  - c\n d: e\n", 1, 3},
		"an unknown tag": {"a: 1\nb: !x!y 2\n", 0, 2},
		"a tab":          {"a:\n\tb: 1\n", 0, 2},
		"a vault is content that nobody can read here": {"$ANSIBLE_VAULT;1.1;AES256\n3: [\n", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(files(t, map[string]string{"f.yml": test.text}), "f.yml")
			documents, fault := ReadYAML(path)
			if len(documents) != test.documents || (fault == nil) != (test.line == 0) {
				t.Fatalf("got %d documents, %v", len(documents), fault)
			}
			if fault != nil && (fault.Position != Position{path, test.line, 1} || !strings.HasPrefix(fault.Message, "invalid YAML: ")) {
				t.Errorf("want line %d, got %v", test.line, fault)
			}
		})
	}
	if _, fault := ReadYAML(t.TempDir()); fault == nil || fault.Line != 0 {
		t.Errorf("a directory: got %v", fault)
	}
}

func TestWhereRolesAreFound(t *testing.T) {
	dir := files(t, map[string]string{
		"plays/roles/a/x": "", "plays/d/x": "", "roles/b/tasks/e/x": "", "roles/a/x": "", "roles/b/x": "", "shared/a/x": "", "shared/c/x": "",
		"tree/my/own/roles/a/x": "", "tree/my/own/roles/deep/er/x": "", "tree/my/own/roles/sibling/x": "", "file": "",
	})
	at := func(path string) string { return filepath.Join(dir, filepath.FromSlash(path)) }
	search := Search{Dir: dir, Roles: []string{at("shared"), at("roles")}, Trees: []string{at("none"), at("tree")}}
	own := place{roleDir: at("tree/my/own/roles/a"), collection: "my.own", base: at("tree/my/own/roles/a/tasks")}
	for name, test := range map[string]struct {
		role       string
		from       place
		want       string
		collection string
	}{
		"beside the playbook first":           {"a", place{play: at("plays")}, "plays/roles/a", ""},
		"in a run of a role, the search path": {"a", place{base: at("plays")}, "shared/a", ""},
		"then in the search path":             {"c", place{play: at("plays")}, "shared/c", ""},
		"in its order":                        {"b", place{play: at("plays")}, "roles/b", ""},
		"the playbook's directory is last":    {"d", place{play: at("plays")}, "plays/d", ""},
		"not beside the tasks":                {"tasks/e", place{play: at("plays"), base: at("roles/b")}, "", ""},
		"by the name of a collection":         {"my.own.a", place{base: dir}, "tree/my/own/roles/a", "my.own"},
		"below a directory of a collection":   {"my.own.deep.er", place{base: dir}, "tree/my/own/roles/deep/er", "my.own"},
		"in the collections of the play":      {"a", place{base: at("plays"), collections: []string{"no.such", "my.own"}}, "tree/my/own/roles/a", "my.own"},
		"beside the role that names it":       {"sibling", own, "tree/my/own/roles/sibling", "my.own"},
		"by its path":                         {at("shared/a"), place{base: dir}, "shared/a", ""},
		"a path that leads to nothing":        {at("shared/z"), place{base: dir}, "", ""},
		"a file is none":                      {"file", place{base: at("plays")}, "", ""},
		"not in a collection it has not got":  {"my.own.z", place{base: dir}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := &walker{search: search, unit: &Unit{Dir: at("plays")}}
			got, collection := w.findRole(test.role, test.from)
			want := ""
			if test.want != "" {
				want = at(test.want)
			}
			if got != want || collection != test.collection {
				t.Errorf("want %q of %q, got %q of %q", want, test.collection, got, collection)
			}
		})
	}
}

func TestWhereFilesOfTasksAreFound(t *testing.T) {
	dir := files(t, map[string]string{
		"r/templates/a": "", "r/a": "", "r/b": "", "r/tasks/templates/c": "", "r/tasks/d": "", "r/files/e": "", "r/templates/sub/f": "",
	})
	task := &Task{Position: Position{File: filepath.Join(dir, "r/tasks/main.yml")}, RoleDir: filepath.Join(dir, "r")}
	play := &Task{Position: Position{File: filepath.Join(dir, "r/play.yml")}}
	for name, test := range map[string]struct {
		task       *Task
		file, want string
	}{
		"the role's templates come first": {task, "a", "r/templates/a"},
		"then the role":                   {task, "b", "r/b"},
		"then templates beside the task":  {task, "c", "r/tasks/templates/c"},
		"then what is beside the task":    {task, "d", "r/tasks/d"},
		"in a directory":                  {task, "sub/f", "r/templates/sub/f"},
		"not in another part":             {task, "e", ""},
		"a directory is not a file":       {task, "sub", ""},
		"beside a playbook":               {play, "a", "r/templates/a"},
		"by its path":                     {task, filepath.Join(dir, "r/files/e"), "r/files/e"},
	} {
		t.Run(name, func(t *testing.T) {
			want := ""
			if test.want != "" {
				want = filepath.Join(dir, test.want)
			}
			if got := FindFile(test.task, "templates", test.file); got != want {
				t.Errorf("want %q, got %q", want, got)
			}
		})
	}
}

func TestFilesOfAPartOfARole(t *testing.T) {
	dir := files(t, map[string]string{
		"yml/main.yml": "", "yml/main.yaml": "", "json/main.json": "", "plain/main": "", "dir/main/b.yml": "", "dir/main/sub/a.yaml": "", "dir/main/notes.txt": "", "none/other.yml": "",
	})
	for part, want := range map[string][]string{
		"yml": {"yml/main.yml"}, "json": {"json/main.json"}, "plain": {"plain/main"}, "dir": {"dir/main/b.yml", "dir/main/sub/a.yaml"}, "none": nil,
	} {
		var got []string
		for _, path := range mainFiles(filepath.Join(dir, part), "main") {
			relative, err := filepath.Rel(dir, path)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, filepath.ToSlash(relative))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", part, diff)
		}
	}
}

func TestAtAPath(t *testing.T) {
	dir := files(t, map[string]string{"f.yml": "spec:\n  a.b:\n    c: 1\n  a:\n    - d: 1\n    - &e\n      f: 2\n  g: *e\n"})
	documents, _ := ReadYAML(filepath.Join(dir, "f.yml"))
	for path, want := range map[string]int{
		"spec": 1, "spec.a.b.c": 3, `spec["a.b"].c`: 3, "spec.a[0].d": 5, "spec.a[1].f": 7, "spec.g.f": 7, "spec.a[2]": 4, "spec.none.a": 1, "": 1,
	} {
		if got := At(documents[0], path); got.Line != want {
			t.Errorf("%s: want line %d, got %d", path, want, got.Line)
		}
	}
}
