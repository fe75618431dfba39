// Package probes answers the probes of the kubelet, and names the checks that fail.
package probes

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

// requestTimeout is the time that a client has to send its request.
const requestTimeout = 10 * time.Second

// Probe answers one of the kubelet's probes: with 200 if all checks pass, otherwise with
// 500. Its answer and the log name the checks that fail and their errors, which
// controller-runtime's handler does not.
type Probe struct {
	// Checks are complete before the manager serves the probe.
	Checks map[string]healthz.Checker

	path string // with a slash before it
	log  logr.Logger

	mu     sync.Mutex
	logged string // the failures that were logged last
}

// Probes are the two probes of a manager.
type Probes struct{ Healthz, Readyz *Probe }

// New returns the probes at these paths, without checks.
func New(log logr.Logger, healthz, readyz string) Probes {
	return Probes{Healthz: newProbe(log, healthz), Readyz: newProbe(log, readyz)}
}

func newProbe(log logr.Logger, path string) *Probe {
	return &Probe{path: "/" + strings.Trim(path, "/"), Checks: map[string]healthz.Checker{}, log: log}
}

// name returns the probe's name in its answers and in the log.
func (p *Probe) name() string { return strings.TrimPrefix(p.path, "/") }

// AddTo serves the probes at the address as long as the manager runs. "" and "0" mean no
// probes.
func (p Probes) AddTo(m manager.Manager, address string) error {
	if address == "" || address == "0" {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return &options.Error{Field: "ctrl.Options.HealthProbeBindAddress", Err: fmt.Errorf("listen for probes: %w", err)}
	}
	mux := http.NewServeMux()
	for _, probe := range []*Probe{p.Healthz, p.Readyz} {
		mux.Handle(probe.path, probe)
		mux.Handle(probe.path+"/{check...}", probe)
	}
	server := &http.Server{Handler: mux, ReadTimeout: requestTimeout, IdleTimeout: time.Minute}
	return m.Add(&manager.Server{Name: "health probe", Server: server, Listener: listener})
}

// ServeHTTP runs all checks, or only the one that the path names.
func (p *Probe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	names := slices.Sorted(maps.Keys(p.Checks))
	single := r.PathValue("check")
	if single != "" {
		if p.Checks[single] == nil {
			http.NotFound(w, r)
			return
		}
		names = []string{single}
	}
	var lines, failures []string
	for _, name := range names {
		if err := p.Checks[name](r); err != nil {
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
func (p *Probe) logChanges(failures []string) {
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
