package operator

import (
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ensign-operator/ensign/pkg/options"
)

// serveProfiles serves profiles of the process as controller-runtime does. That would open the port
// before the manager starts, and leave it open if it never does.
func (c *components) serveProfiles() error {
	address := c.election.PprofBindAddress
	if address == "" || address == "0" {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return &options.Error{Field: "ctrl.Options.PprofBindAddress", Err: fmt.Errorf("listen for profiles: %w", err)}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	return c.addServer(&manager.Server{Name: "pprof", Server: server, Listener: listener})
}
