package check

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/watches"
)

func TestWhatIsNotInstalled(t *testing.T) {
	for name, id := range map[string]string{
		"nosuch": "missing-plugin", "ansible.builtin.nosuch": "missing-plugin", "ansible.legacy.nosuch": "missing-plugin",
		"ansible.netcommon.x": "missing-collection", "community.mysql.x": "missing-collection", "here.it.x": "missing-plugin", "a.b": "missing-plugin",
	} {
		p := project(t, thing(), map[string]string{"tree/here/it/MANIFEST.json": `{"collection_info":{"version":"1.0.0"}}`})
		p.trees = []string{filepath.Join(p.options.Dir, "tree")}
		p.missing(false, "module", name, source.Position{File: p.watchesFile, Line: 3}, "")
		p.missing(true, "module", "there", source.Position{}, "")
		p.absentees()
		want(t, p, "watches.yaml:3 error "+id)
	}
}

func TestPinsOfCollections(t *testing.T) {
	const tasks = "roles/r/tasks/main.yml"
	for version, old := range map[string]bool{
		"5.2.0": true, "'==5.2.0'": true, "'<5.3.0'": true, "5.3.0": false, "10.0.0": false, "'>=2.0.0'": false, "'*'": false,
		"'>=5.0.0,<5.3.0'": true, "'<=5.2.9'": true, "'!=5.2.0'": false, "'<6.0.0, >=5.0.0'": false,
	} {
		for task, severity := range map[string]string{
			"- kubernetes.core.k8s: {template: a.j2}\n": "error", "- kubernetes.core.k8s: {src: a.yml}\n": "warning", "- template: {src: a.j2}\n": "warning",
		} {
			t.Run(version+task, func(t *testing.T) {
				p := project(t, thing(), map[string]string{
					tasks: task, "requirements.yml": "collections:\n  - name: kubernetes.core\n    version: " + version + "\n  - {name: other.core, version: 1.0.0}\n",
				})
				p.requirements()
				if old {
					want(t, p, "requirements.yml:3 "+severity+" old-collection")
				} else {
					want(t, p)
				}
			})
		}
	}
}

func TestAnOldCollectionIsOneFinding(t *testing.T) {
	const manifest = "tree/kubernetes/core/MANIFEST.json"
	files := map[string]string{manifest: `{"collection_info":{"version":"3.0.0"}}`, "roles/r/tasks/main.yml": ""}
	for requirements, wanted := range map[string]string{
		"": manifest + ":0 warning old-collection", "collections: [{name: kubernetes.core, version: 3.0.0}]": "requirements.yml:1 warning old-collection",
	} {
		files["requirements.yml"] = requirements
		p := project(t, thing(), files)
		p.trees = []string{filepath.Join(p.options.Dir, "tree")}
		p.requirements()
		want(t, p, wanted)
	}
}

func TestWhatTheLoaderSaysIsSaidOnce(t *testing.T) {
	p := project(t, thing(), map[string]string{"roles/r/tasks/main.yml": "name: x\n"})
	p.faults(p.Units[0])
	at := func(file string) string { return filepath.Join(p.options.Dir, file) }
	p.syntax([]reader.Fault{
		{File: at("roles/r/tasks/main.yml"), Line: 1, Message: "the same in other words"},
		{File: at("roles/r/tasks/main.yml"), Line: 2, Message: "the role 'x' was not found"},
		{File: at("b.yml"), Line: 3, Message: "couldn't resolve module/action 'x'"},
		{File: at("b.yml"), Line: 4, Message: "cannot include {{ x }}"},
		{File: at("b.yml"), Line: 5, Message: "conflicting action statements"},
	})
	want(
		t, p, "b.yml:4 warning syntax", "b.yml:5 error syntax",
		"roles/r/tasks/main.yml:1 error syntax", "roles/r/tasks/main.yml:2 error syntax",
	)
}

func TestAnOpenSchemaIsOneFindingHoweverManyNamesThereAre(t *testing.T) {
	const open = "              x-kubernetes-preserve-unknown-fields: true\n"
	watch := thing()
	watch.Finalizer = &watches.Finalizer{Name: "example.com/f", Content: watches.Content{Role: "bye"}}
	tasks := ""
	for n := range 7 {
		tasks += fmt.Sprintf("- debug:\n  register: out_%d\n", n)
	}
	p := project(t, watch, map[string]string{"roles/r/tasks/main.yml": tasks, "roles/bye/tasks/main.yml": "- debug:\n  register: last\n", "config/crd.yaml": definition + open})
	p.openSchemas()
	want(t, p, "config/crd.yaml:15 warning shadowed-variable")
	for _, word := range []string{"any of 8 variables", "last (roles/bye/tasks/main.yml:2), out_0 (", " and 3 more"} {
		if !strings.Contains(p.findings[0].Message, word) {
			t.Errorf("want %q in %q", word, p.findings[0].Message)
		}
	}
}
