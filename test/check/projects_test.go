package check

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/author/check"
	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// kindOfProject is a project without a fault. Its settings say:
//
//	dir: the directory to be checked, below the files
//	link: PATH -> TARGET, a symbolic link
//	kind: KIND SCOPE FIELD…, for which the project gets a definition in example.com/v1
//	tasks: how many tasks are read
//	note: FILE:LINE ID of what check says of it; nothing else, and nothing worse
//	unknown: FILE:LINE of a right that only a run knows
type kindOfProject struct {
	files, links   map[string]string
	definitions    []string
	dir            string
	tasks          int
	notes, unknown []string
}

func (k *kindOfProject) set(key, value string) error {
	var err error
	switch key {
	case "dir":
		k.dir = value
	case "link":
		path, target, _ := strings.Cut(value, " -> ")
		k.links[path] = target
	case "kind":
		k.definitions = append(k.definitions, definition(strings.Fields(value)))
	case "tasks":
		k.tasks, err = strconv.Atoi(value)
	case "note":
		k.notes = append(k.notes, value)
	case "unknown":
		k.unknown = append(k.unknown, value)
	default:
		err = os.ErrInvalid
	}
	return err
}

// definition returns a CRD with a closed schema of texts.
func definition(words []string) string {
	fields := make([]string, 0, len(words))
	for _, field := range words[2:] {
		fields = append(fields, field+": {type: string, enum: [a, b]}")
	}
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.example.com}
spec:
  group: example.com
  scope: %[3]s
  names: {kind: %[2]s, plural: %[1]ss, singular: %[1]s}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {%[4]s}}
            status: {type: object, default: {observedGeneration: -1}, x-kubernetes-preserve-unknown-fields: true}
`, strings.ToLower(words[0]), words[0], words[1], strings.Join(fields, ", "))
}

// ofTheManager are the rights that each manager needs.
const ofTheManager = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: own}
rules:
  - {apiGroups: [events.k8s.io], resources: [events], verbs: [create, patch]}
  - {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}
  - {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}
  - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list, create, update]}
  - {apiGroups: [""], resources: [events], verbs: [create, patch]}
  - {apiGroups: [""], resources: [configmaps], verbs: [get, list, create, patch, delete]}
`

// TestProjectsWithoutAFault has the kinds of project that operators have. Each works in an image,
// and its roles are those that it needs: whatever check says of it beside the notes is wrong.
func TestProjectsWithoutAFault(t *testing.T) {
	paths, err := filepath.Glob("testdata/projects/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("there are no projects", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			k := kindOfProject{links: map[string]string{}}
			if _, k.files, err = scratch.Case(string(text), k.set); err != nil {
				t.Fatal(err)
			}
			root := t.TempDir()
			k.files[filepath.Join(k.dir, "config/crd/all.yaml")] = strings.Join(k.definitions, "---\n")
			k.files[filepath.Join(k.dir, "config/rbac/manager.yaml")] = ofTheManager
			scratch.Write(t, root, k.files)
			for path, target := range k.links {
				if err := os.Symlink(target, filepath.Join(root, path)); err != nil {
					t.Fatal(err)
				}
			}
			k.try(t, filepath.Join(root, k.dir))
		})
	}
}

func (k *kindOfProject) try(t *testing.T, dir string) {
	t.Helper()
	o := options(t, dir)
	r, err := check.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	for _, f := range r.Relative(o.Dir).Findings {
		if note := fmt.Sprintf("%s:%d %s", f.File, f.Line, f.ID); f.Severity == report.Info {
			notes = append(notes, note)
		} else {
			t.Errorf("%s %s: %s", f.Severity, note, f.Message)
		}
	}
	slices.Sort(notes)
	if diff := cmp.Diff(k.notes, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if r.Tasks != k.tasks {
		t.Errorf("want %d tasks, got %d", k.tasks, r.Tasks)
	}
	k.tryRights(t, o.Dir)
}

// tryRights compares the rights that the project needs with those of its roles.
func (k *kindOfProject) tryRights(t *testing.T, dir string) {
	t.Helper()
	p, err := check.Load(t.Context(), options(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	unknown := map[string]bool{}
	for _, u := range p.Needs().Unknown {
		place := fmt.Sprintf("%s:%d", u.File, u.Line)
		if path, err := filepath.Rel(dir, place); err == nil {
			place = path
		}
		unknown[place] = true
	}
	if diff := cmp.Diff(k.unknown, slices.Sorted(maps.Keys(unknown))); diff != "" {
		t.Errorf("rights that only a run knows (-want +got):\n%s", diff)
	}
	granted, err := rights.ReadGranted(filepath.Join(dir, "config", "rbac"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range p.Needs().Difference(granted) {
		t.Errorf("roles: %s", line)
	}
}
