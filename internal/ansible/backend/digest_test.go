package backend

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

func TestWhereTemplatesAreLookedFor(t *testing.T) {
	a := Backend{watches: []watches.Watch{
		{Content: watches.Content{Role: "one", RolesPath: "/roles"}, Finalizer: &watches.Finalizer{Content: watches.Content{Playbook: "/plays/bye.yml"}}},
		{Content: watches.Content{Role: "two", RolesPath: "/roles"}},
		{Content: watches.Content{Role: "my.own.three"}},
	}}
	if got, want := a.allContentPaths([]string{"/more"}, watches.Trees([]string{"/coll"})), []string{"/coll/ansible_collections/my/own", "/more", "/plays", "/roles"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatChangesTheDigestOfAWatch(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}
	dir := t.TempDir()
	for _, name := range []string{"roles/mine/tasks/main.yml", "roles/other/tasks/main.yml", "more/r/tasks/main.yml", "plays/bye.yml", "coll/ansible_collections/a/b/roles/c/tasks/main.yml",
		"coll/ansible_collections/a/installed/MANIFEST.json", "coll/ansible_collections/a/installed/plugins/x.py", "elsewhere", "ansible.cfg", "plays/logs/run.log", "plays/runs/uid/file", "plays/more.yml"} {
		scratch.Write(t, dir, map[string]string{name: "[]"})
	}
	scratch.Write(t, dir, map[string]string{"plays/.gitignore": "*.log\n"})
	state := func() (*watches.Watch, *Backend) {
		watch := watches.Watch{
			GVK: gvk, Line: 1, Selector: labels.Everything(), Vars: map[string]any{"a": "b"},
			Content:   watches.Content{Role: "mine", RolesPath: filepath.Join(dir, "roles")},
			Finalizer: &watches.Finalizer{Name: "f", Content: watches.Content{Playbook: filepath.Join(dir, "plays/bye.yml")}},
		}
		a := &Backend{watches: []watches.Watch{watch}, info: pyenv.Info{Digest: "python"}, runDir: filepath.Join(dir, "plays/runs")}
		return &a.watches[0], a
	}
	digest := func(b *Backend) string {
		t.Helper()
		digests, err := b.digestWatches([]string{filepath.Join(dir, "more"), filepath.Join(dir, "none")}, []string{filepath.Join(dir, "coll")}, []string{filepath.Join(dir, "ansible.cfg")})
		if err != nil {
			t.Fatal(err)
		}
		if len(digests[gvk]) != digestLength {
			t.Fatalf("got %q", digests[gvk])
		}
		return digests[gvk]
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edited := ""
	edit := func(name string) func(*watches.Watch, *Backend) {
		return func(*watches.Watch, *Backend) {
			edited = name
			write(name, "[x]")
		}
	}
	_, before := state()
	want := digest(before)
	for name, test := range map[string]struct {
		change func(*watches.Watch, *Backend)
		same   bool
	}{
		"nothing":               {func(*watches.Watch, *Backend) {}, true},
		"the line of the entry": {func(w *watches.Watch, _ *Backend) { w.Line = 9 }, true},
		"what no run has another result for": {func(w *watches.Watch, _ *Backend) {
			w.MaxConcurrentReconciles, w.MaxRunnerArtifacts, w.Warm = 7, 7, true
		}, true},
		"a file that no run reads": {edit("elsewhere"), true},
		"a file of an installed collection, which its manifest stands for": {edit("coll/ansible_collections/a/installed/plugins/x.py"), true},
		"an installed collection, which content may name":                  {edit("coll/ansible_collections/a/installed/MANIFEST.json"), false},
		"a checkout of a collection":                                       {edit("coll/ansible_collections/a/b/roles/c/tasks/main.yml"), false},
		"a variable":                                                       {func(w *watches.Watch, _ *Backend) { w.Vars = map[string]any{"a": "c"} }, false},
		"the selector":                                                     {func(w *watches.Watch, _ *Backend) { w.Selector = labels.SelectorFromSet(labels.Set{"a": "b"}) }, false},
		"a role of another name":                                           {func(w *watches.Watch, _ *Backend) { w.Content.Role = "other" }, false},
		"the role":                                                         {edit("roles/mine/tasks/main.yml"), false},
		"a role beside it, which it may use":                               {edit("roles/other/tasks/main.yml"), false},
		"a role in the search path":                                        {edit("more/r/tasks/main.yml"), false},
		"what git ignores beside a playbook":                               {edit("plays/logs/run.log"), true},
		"a directory of runs beside a playbook":                            {edit("plays/runs/uid/file"), true},
		"what lies beside a playbook":                                      {edit("plays/more.yml"), false},
		"the finalizer's playbook":                                         {edit("plays/bye.yml"), false},
		"Ansible's settings":                                               {edit("ansible.cfg"), false},
		"the Python environment":                                           {func(_ *watches.Watch, b *Backend) { b.info.Digest = "newer" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			watch, a := state()
			edited = "elsewhere"
			test.change(watch, a)
			defer func() { write(edited, "[]") }()
			if got := digest(a); (got == want) != test.same {
				t.Errorf("want same %t, got %s and %s", test.same, want, got)
			}
		})
	}
	t.Run("each file of the collection that the role is of", func(t *testing.T) {
		of := func() string {
			watch, a := state()
			watch.Content = watches.Content{Role: "a.installed.c"}
			return digest(a)
		}
		before := of()
		write("coll/ansible_collections/a/installed/plugins/x.py", "[x]")
		if of() == before {
			t.Error("a change of the collection leaves the digest as it was")
		}
	})
}

func TestChangedFilesAreNamedOnce(t *testing.T) {
	dir, runs, said := t.TempDir(), t.TempDir(), ""
	role := filepath.Join(dir, "r", "tasks", "main.yml")
	if err := os.MkdirAll(filepath.Dir(role), 0o700); err != nil {
		t.Fatal(err)
	}
	start := func(text string, age time.Duration) string {
		t.Helper()
		said = ""
		changed := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(role, []byte(text), 0o600), os.Chtimes(role, changed, changed), os.Chtimes(filepath.Dir(role), changed, changed)); err != nil {
			t.Fatal(err)
		}
		a := Backend{runDir: runs, content: []string{dir}, watches: []watches.Watch{{Content: watches.Content{Role: "r", RolesPath: dir}, Selector: labels.Everything()}}}
		a.Options.Logger = funcr.New(func(_, line string) { said += line }, funcr.Options{})
		var err error
		if a.digests, err = a.digestWatches(nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		a.nameChanges(nil)
		return said
	}
	for _, step := range []struct {
		text  string
		age   time.Duration
		wants string
	}{
		{"[]", time.Hour, ""}, {"[]", -time.Hour, ""}, {"[ ]", -time.Hour, role}, {"[ ]", -time.Hour, ""}, {"[  ]", time.Hour, `"count"=0`},
	} {
		if got := start(step.text, step.age); (got == "") != (step.wants == "") || !strings.Contains(got, step.wants) {
			t.Errorf("%+v: got %q", step, got)
		}
	}
}
