package watches

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzLoad loads any file. Each fault of an invalid file names a line of that file, and
// the watches of a valid file are within the documented ranges.
func FuzzLoad(f *testing.F) {
	search := fuzzOperator(f)
	f.Add("- version: v1\n  group: example.com\n  kind: Site\n  role: mysql\n", "60s")
	f.Fuzz(func(t *testing.T, text, variable string) {
		search := search
		search.LookupEnv = func(name string) (string, bool) { return variable, name == "VARIABLE" }
		if err := os.WriteFile(filepath.Join(search.Dir, "watches.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		watches, err := Load("watches.yaml", search)
		again, errAgain := Load("watches.yaml", search)
		if !reflect.DeepEqual(watches, again) || !reflect.DeepEqual(err, errAgain) {
			t.Fatalf("read twice: %v, %v and %v, %v", watches, err, again, errAgain)
		}
		if err != nil {
			checkFaults(t, text, err)
			return
		}
		if len(watches) == 0 {
			t.Error("a file without watches passes")
		}
		kinds := map[schema.GroupKind]bool{}
		for _, watch := range watches {
			if kinds[watch.GVK.GroupKind()] {
				t.Errorf("%v is watched twice", watch.GVK)
			}
			kinds[watch.GVK.GroupKind()] = true
			checkWatch(t, text, watch)
		}
	})
}

// fuzzOperator makes an operator's directory, a collection and a directory of roles.
func fuzzOperator(f *testing.F) Search {
	f.Helper()
	dir := f.TempDir()
	for _, path := range []string{
		"roles/mysql/tasks/main.yml", "shared/roles/other/meta/main.yml", "playbooks/site.yml",
		"collections/ansible_collections/ns/col/roles/app/tasks/main.yml",
	} {
		write(f, filepath.Join(dir, path), "[]\n")
	}
	return Search{Dir: dir, RolesPath: []string{"shared"}, CollectionsPath: []string{"collections"}}
}

// lines counts lines as editors and YAML do: there are more line breaks than "\n".
func lines(text string) int {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return 1 + strings.Count(strings.NewReplacer("\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(text), "\n")
}

func checkFaults(t *testing.T, text string, err error) {
	t.Helper()
	var faults Faults
	if !errors.As(err, &faults) || len(faults) == 0 {
		t.Fatalf("%#v", err)
	}
	for _, fault := range faults {
		if fault.Line < 1 || fault.Line > lines(text) {
			t.Errorf("%v names a line that a file of %d lines does not have", fault, lines(text))
		}
		if fault.Message == "" || strings.ContainsFunc(fault.Message, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q is no line for a terminal", fault.Message)
		}
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if !strings.HasPrefix(line, "watches.yaml:") {
			t.Errorf("%q does not say where", line)
		}
	}
}

func checkWatch(t *testing.T, text string, w Watch) {
	t.Helper()
	if w.GVK.Version == "" || w.GVK.Kind == "" || w.Line < 1 || w.Line > lines(text) || w.Selector == nil {
		t.Errorf("%+v is not a watch of a file of %d lines", w, lines(text))
	}
	if w.ReconcilePeriod < 0 || w.Timeout < 0 || w.MaxRunnerArtifacts < 0 || w.MaxConcurrentReconciles < 0 {
		t.Errorf("out of range: %+v", w)
	}
	if w.Verbosity != nil && (*w.Verbosity < 0 || *w.Verbosity > 7) {
		t.Errorf("verbosity %d", *w.Verbosity)
	}
	checkContent(t, w.Content)
	checkVars(t, w.Vars, 1)
	if w.Finalizer != nil {
		checkContent(t, w.Finalizer.Content)
		checkVars(t, w.Finalizer.Vars, 1)
		if faults := validation.IsQualifiedName(w.Finalizer.Name); len(faults) > 0 {
			t.Errorf("finalizer %q: %v", w.Finalizer.Name, faults)
		}
	}
}

// checkContent fails if ansible-runner would not find the content.
func checkContent(t *testing.T, c Content) {
	t.Helper()
	if (c.Role == "") == (c.Playbook == "") {
		t.Fatalf("%+v is not one of role and playbook", c)
	}
	if c.Playbook != "" && (!filepath.IsAbs(c.Playbook) || filepath.Clean(c.Playbook) != c.Playbook) {
		t.Errorf("playbook %q", c.Playbook)
	}
	if c.RolesPath != "" && (!filepath.IsAbs(c.RolesPath) || strings.ContainsRune(c.Role, filepath.Separator)) {
		t.Errorf("role %q in %q", c.Role, c.RolesPath)
	}
}

// checkVars fails if a variable has no JSON type or nests too deep for Ansible.
func checkVars(t *testing.T, value any, depth int) {
	t.Helper()
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			checkVars(t, member, depth+1)
		}
	case []any:
		for _, element := range v {
			checkVars(t, element, depth+1)
		}
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Errorf("%v is not a number of JSON", v)
		}
	case nil, bool, string, int64:
	default:
		t.Errorf("%T is no value of JSON", v)
	}
	if depth > maxDepth+1 {
		t.Errorf("vars of %d levels", depth)
	}
}

// FuzzRolePath checks the candidates for any role: a collection's role is searched only
// in its collection, and ansible-runner would find each candidate.
func FuzzRolePath(f *testing.F) {
	f.Add("ns.col.app", "/usr/share/ansible/collections", "/operator")
	f.Fuzz(func(t *testing.T, role, path, dir string) {
		if role == "" || !filepath.IsAbs(dir) {
			return // Load says that first.
		}
		search := Search{Dir: filepath.Clean(dir), RolesPath: []string{path}, CollectionsPath: []string{path}}
		for _, c := range search.roleCandidates(role) {
			if !filepath.IsAbs(c.dir) || filepath.Clean(c.dir) != c.dir {
				t.Errorf("role %q is looked for in %q", role, c.dir)
			}
			if c.content.RolesPath != "" {
				if filepath.Join(c.content.RolesPath, c.content.Role) != c.dir {
					t.Errorf("role %q, found in %q, will be looked for in %+v", role, c.dir, c.content)
				}
				continue
			}
			parent := filepath.Join(search.absolute(path), "ansible_collections")
			if filepath.Base(search.absolute(path)) == "ansible_collections" {
				parent = search.absolute(path)
			}
			if c.content.Role != role || !strings.HasPrefix(c.dir, strings.TrimSuffix(parent, "/")+"/") {
				t.Errorf("the collection's role %q is looked for in %q, beside %q", role, c.dir, parent)
			}
		}
	})
}

// FuzzSources reads what a CR's author lists as sources of values, and the release that a status names. Whatever is
// there, the sources are few, of valid names and of kinds that are read.
func FuzzSources(f *testing.F) {
	chart := mustLoad(f, chartOperator(f), valuesWatch)[0].Chart
	f.Add(`{"metadata":{"name":"cr","namespace":"ns"},"spec":{"valuesFrom":[{"kind":"Secret","name":"a","key":"k","targetPath":"a\\.b.c","optional":true}]},"status":{"deployedRelease":{"name":"r"}}}`)
	f.Add(`{"metadata":{"namespace":"ns"},"spec":{"auth":{"secret":"../x"},"valuesFrom":[[],{"kind":"Pod"}]},"status":{"deployedRelease":[]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var cr map[string]any
		if json.Unmarshal([]byte(text), &cr) != nil || cr == nil {
			return
		}
		sources, err := chart.ValuesSourcesOf(cr)
		if len(sources) > len(chart.ValuesFrom)+maxValuesSources || err != nil && len(err.Error()) > 1024 {
			t.Errorf("%d sources, %v", len(sources), err)
		}
		for _, s := range sources {
			if s.Kind != SecretKind && s.Kind != ConfigMapKind || len(validation.IsDNS1123Subdomain(s.Name)) > 0 || len(validation.IsConfigMapKey(s.Key)) > 0 || len(s.TargetPath) > maxTargetPath || slices.Contains(s.TargetPath, "") {
				t.Errorf("got %+v", s)
			}
		}
		namespace, name, err := chart.ReleaseOf(cr)
		if err == nil && (len(validation.IsDNS1123Label(namespace)) > 0 || len(releaseNameFaults(name)) > 0) {
			t.Errorf("got the release %s/%s", namespace, name)
		}
	})
}
