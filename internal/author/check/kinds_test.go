package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/watches"
)

func TestAFinalizerNeedsADomain(t *testing.T) {
	for name, want := range map[string]bool{"finalizer": true, "example.com/finalizer": false} {
		watch := thing()
		watch.Finalizer = &watches.Finalizer{Name: name}
		p := project(t, watch, map[string]string{"roles/r/tasks/main.yml": "- debug:\n"})
		p.kinds(p.Units[0])
		if got := slices.ContainsFunc(p.findings, func(f report.Finding) bool { return f.ID == "finalizer-name" }); got != want {
			t.Errorf("%s: got %+v", name, p.findings)
		}
	}
}

func TestStatusFromNamesAKind(t *testing.T) {
	for kind, meant := range map[string]string{"ConfigMaps": "ConfigMap", "things": "Thing", "ConfigMap": "", "Gadgets": ""} {
		t.Run(kind, func(t *testing.T) {
			watch := thing()
			watch.StatusFrom = map[string]watches.ChildField{"x": {Kind: kind, Name: "{name}", Path: "{.data.x}"}}
			p := project(t, watch, map[string]string{"config/crd.yaml": definition + closed, "watches.yaml": "- kind: Thing\n  statusFrom: {x: {from: '" + kind + "/{name}'}}\n"})
			p.kinds(p.Units[0])
			if meant == "" {
				want(t, p)
				return
			}
			want(t, p, "watches.yaml:2 warning watches")
			if !strings.Contains(p.findings[0].Message, "did you mean "+meant+"?") {
				t.Errorf("want %s, got %q", meant, p.findings[0].Message)
			}
		})
	}
}
