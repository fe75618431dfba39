package check

import (
	"slices"
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
