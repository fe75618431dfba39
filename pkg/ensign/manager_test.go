package ensign

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// What takes a manager of controller-runtime takes this one.
var _ ctrl.Manager = (*Manager)(nil)

// nowhere is an API server that nobody answers for.
func nowhere() *rest.Config { return &rest.Config{Host: "http://127.0.0.1:1"} }

// newManager returns one with a directory of its own, in which is a watches.yaml with this text.
func newManager(t *testing.T, text string, change func(*ctrl.Options, *Options)) (*Manager, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "watches.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard()}
	e := Options{Dir: dir, RunDir: filepath.Join(dir, "runs"), Environ: []string{"PATH=" + dir, "HOME=" + dir}, Executable: filepath.Join(dir, "program"), Registerer: prometheus.NewRegistry()}
	if change != nil {
		change(&o, &e)
	}
	return NewManager(nowhere(), o, e)
}

func TestWhatBreaksTheFenceIsRefused(t *testing.T) {
	for field, change := range map[string]func(*ctrl.Options){
		"ctrl.Options.LeaderElectionReleaseOnCancel":       func(o *ctrl.Options) { o.LeaderElectionReleaseOnCancel = true },
		"ctrl.Options.LeaderElectionResourceLockInterface": func(o *ctrl.Options) { o.LeaderElectionResourceLockInterface = &resourcelock.LeaseLock{} },
	} {
		_, err := newManager(t, "", func(o *ctrl.Options, _ *Options) {
			o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "lease", "ns"
			change(o)
		})
		if named, ok := errors.AsType[*Error](err); !ok || named.Field != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

func TestAllThatIsWrongIsSaidAtOnce(t *testing.T) {
	_, err := newManager(t, "", func(o *ctrl.Options, e *Options) {
		o.LeaderElection, o.LeaderElectionNamespace = true, "ns"
		e.MaxVerbosity, e.ProxyPort, e.Environ = 9, -1, []string{"ANSIBLE_GATHERING=never"}
	})
	for _, want := range []string{"ctrl.Options.LeaderElectionID", "Options.MaxVerbosity=9", "Options.ProxyPort=-1", "ANSIBLE_GATHERING"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s in %v", want, err)
		}
	}
	if _, err := NewManager(nil, ctrl.Options{}, Options{}); err == nil {
		t.Error("want an error without a rest.Config")
	}
}

func TestWatchesAreAddedBeforeTheStart(t *testing.T) {
	chart := t.TempDir()
	if err := os.WriteFile(filepath.Join(chart, "Chart.yaml"), []byte("apiVersion: v2\nname: c\nversion: 1.0.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := newManager(t, "- {group: g.io, version: v1, kind: K, chart: "+chart+"}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	list, err := m.LoadWatches(t.Context(), "watches.yaml")
	if err != nil || len(list) != 1 {
		t.Fatalf("got %v, %v", list, err)
	}
	if err := m.AddWatch(list[0]); err != nil {
		t.Fatal(err)
	}
	if err := m.AddWatch(list[0]); err == nil || !strings.Contains(err.Error(), "g.io/v1, Kind=K") {
		t.Errorf("got %v", err)
	}
	if err := m.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "chart-exec") {
		t.Errorf("want the missing program to be found before the API server is asked, got %v", err)
	}
	if err := m.AddWatch(list[0]); err == nil || !strings.Contains(err.Error(), "started") {
		t.Errorf("got %v", err)
	}
	if err := m.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "started") {
		t.Errorf("got %v", err)
	}
}

// All kinds of a program may be reconciled in Go.
func TestAFileMayWatchNothing(t *testing.T) {
	m, err := newManager(t, "---\n# none yet\n[]\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := m.LoadWatches(t.Context(), "watches.yaml"); err != nil || len(list) > 0 {
		t.Errorf("got %v, %v", list, err)
	}
}

func TestRolesNeedPythonAndAFileWithFaultsDoesNot(t *testing.T) {
	for text, want := range map[string]string{
		"- {group: g.io, version: v1, kind: K, role: r}\n":           "ansible-runner",
		"- {group: g.io, version: v1, kind: K, chart: c, nope: 1}\n": "nope",
		// Python may be found in vain where the file has faults.
		"- {group: g.io, version: v1, kind: K, role: r, nope: 1}\n": "nope",
		"- {group: g.io, version: v1, kind: K}\n":                   "has no role and no playbook",
		"- {group: g.io, version: v1, kind: K, role: r}\n- {":       "watches.yaml:2: ",
	} {
		m, err := newManager(t, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.LoadWatches(t.Context(), "watches.yaml"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in %v", want, err)
		}
	}
}

// The API server says who may read metrics: without an answer nobody does.
func TestMetricsAreForWhomTheAPIServerNames(t *testing.T) {
	filter, err := metricsserver.Options{FilterProvider: MetricsFilter}.FilterProvider(nowhere(), http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := filter(logr.Discard(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("they were read") }))
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"", "Bearer abc"} {
		r, answer := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody), httptest.NewRecorder()
		r.Header.Set("Authorization", token)
		metrics.ServeHTTP(answer, r)
		if answer.Code < 400 {
			t.Errorf("%q: got %d", token, answer.Code)
		}
	}
}

func TestAnAPIServerThatDoesNotAnswerIsNamed(t *testing.T) {
	m, err := newManager(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "http://127.0.0.1:1") {
		t.Errorf("got %v", err)
	}
}
