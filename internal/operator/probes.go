package operator

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ensign-operator/ensign/pkg/options"
)

// probeTimeout is the time that a client has to send its request.
const probeTimeout = 10 * time.Second

// probe answers one of the kubelet's probes: with 200 if all checks pass, otherwise with
// 500. Its answer and the log name the checks that fail and their errors, which
// controller-runtime's handler does not.
type probe struct {
	path   string // with a slash before it
	checks map[string]healthz.Checker
	log    logr.Logger

	mu     sync.Mutex
	logged string // the failures that were logged last
}

// probes are the two probes of the manager.
type probes struct{ healthz, readyz *probe }

func newProbes(log logr.Logger, healthz, readyz string) probes {
	return probes{healthz: newProbe(log, healthz), readyz: newProbe(log, readyz)}
}

func newProbe(log logr.Logger, path string) *probe {
	return &probe{path: "/" + strings.Trim(path, "/"), checks: map[string]healthz.Checker{}, log: log}
}

// name returns the probe's name in its answers and in the log.
func (p *probe) name() string { return strings.TrimPrefix(p.path, "/") }

// addTo serves the probes at the address as long as the manager runs. "" and "0" mean no
// probes.
func (p probes) addTo(m manager.Manager, address string) error {
	if address == "" || address == "0" {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return &options.Error{Field: "ctrl.Options.HealthProbeBindAddress", Err: fmt.Errorf("listen for probes: %w", err)}
	}
	mux := http.NewServeMux()
	for _, probe := range []*probe{p.healthz, p.readyz} {
		mux.Handle(probe.path, probe)
		mux.Handle(probe.path+"/{check...}", probe)
	}
	server := &http.Server{Handler: mux, ReadTimeout: probeTimeout, IdleTimeout: time.Minute}
	return m.Add(&manager.Server{Name: "health probe", Server: server, Listener: listener})
}

// ServeHTTP runs all checks, or only the one that the path names.
func (p *probe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	names := slices.Sorted(maps.Keys(p.checks))
	single := r.PathValue("check")
	if single != "" {
		if p.checks[single] == nil {
			http.NotFound(w, r)
			return
		}
		names = []string{single}
	}
	var lines, failures []string
	for _, name := range names {
		if err := p.checks[name](r); err != nil {
			failures = append(failures, name+": "+err.Error())
			lines = append(lines, fmt.Sprintf("[-]%s failed: %v", name, err))
		} else {
			lines = append(lines, fmt.Sprintf("[+]%s ok", name))
		}
	}
	if single == "" {
		p.logChanges(failures)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch _, verbose := r.URL.Query()["verbose"]; {
	case len(failures) > 0:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "%s\n%s check failed\n", strings.Join(lines, "\n"), p.name())
	case verbose:
		fmt.Fprintf(w, "%s\n%s check passed\n", strings.Join(lines, "\n"), p.name())
	default:
		fmt.Fprint(w, "ok")
	}
}

// logChanges logs the failures if they differ from those of the previous probe.
func (p *probe) logChanges(failures []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := strings.Join(failures, "; ")
	switch {
	case text == p.logged:
	case text == "":
		p.log.Info("the probe succeeds again", "probe", p.name())
	default:
		p.log.Info("the probe fails", "probe", p.name(), "failing", text)
	}
	p.logged = text
}
