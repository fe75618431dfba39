package operator

import (
	"errors"
	"net"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/options"
)

func TestWatchedNamespaces(t *testing.T) {
	got := cacheOptions([]string{"a", "b"}, nil)
	if len(got.DefaultNamespaces) != 2 {
		t.Errorf("want a and b, got %v", got.DefaultNamespaces)
	}
	if all := cacheOptions(nil, nil); all.DefaultNamespaces != nil || all.DefaultTransform == nil {
		t.Errorf("want all namespaces, stripped; got %+v", all)
	}
}

func TestRecordName(t *testing.T) {
	for want, id := range map[string]string{"lease-children": "lease", "ensign-children": ""} {
		if got := (&Manager{election: ctrl.Options{LeaderElectionID: id}}).recordName("children"); got != want {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}

// The port of profiles is taken by Start, and not left open by a manager that never starts.
func TestAManagerThatDoesNotStartTakesNoPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	o := ctrl.Options{PprofBindAddress: taken.Addr().String(), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}}
	m, err := New(&rest.Config{Host: "127.0.0.1:1"}, o, options.Options{RunDir: t.TempDir(), Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	err = (&components{Manager: m}).serveProfiles()
	if wrong, ok := errors.AsType[*options.Error](err); !ok || wrong.Field != "ctrl.Options.PprofBindAddress" {
		t.Errorf("want an error that names the field, got %v", err)
	}
	c := &components{Manager: m}
	m.election.PprofBindAddress = "127.0.0.1:0"
	if err := c.serveProfiles(); err != nil || len(c.undo) != 1 {
		t.Errorf("got %v", err)
	}
	c.undo[0]()
}

// A role may be in a collection of Python, also that of a finalizer.
func TestWhatNamesARole(t *testing.T) {
	type finalizer struct {
		Role string         `json:"role,omitempty"`
		Vars map[string]any `json:"vars,omitempty"`
	}
	for why, c := range map[string]struct {
		field watches.Field
		want  bool
	}{
		"a role":                       {watches.Field{Name: "role", Value: "a.b.c"}, true},
		"a playbook":                   {watches.Field{Name: "playbook", Value: "role.yml"}, false},
		"a finalizer with a role":      {watches.Field{Name: "finalizer", Value: &finalizer{Role: "a.b.c"}}, true},
		"a finalizer without one":      {watches.Field{Name: "finalizer", Value: &finalizer{Vars: map[string]any{"role": "x"}}}, false},
		"what Go does not write as it": {watches.Field{Name: "finalizer", Value: func() {}}, false},
	} {
		if got := namesRole(c.field); got != c.want {
			t.Errorf("%s: got %t", why, got)
		}
	}
}
