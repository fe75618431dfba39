package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/pkg/options"
)

// idleEngine is a kind of content whose methods nobody calls.
type idleEngine struct{ content.Engine }

func listen(t *testing.T) (l net.Listener, port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, l.Addr().(*net.TCPAddr).Port
}

func freePort(t *testing.T) int {
	t.Helper()
	l, port := listen(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return port
}

// A Go program may go on, or try again, after a Start that failed late.
func TestAStartThatFailsLeavesNothing(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `{"gitVersion": "v1.0.0"}`)
	}))
	defer api.Close()
	taken, port := listen(t)
	registry, ports, dir := prometheus.NewPedanticRegistry(), []int{freePort(t), freePort(t)}, filepath.Join(t.TempDir(), "runs")
	var managers []*Manager // What they leave open, the garbage collector would close.
	for range 2 {
		m, err := New(&rest.Config{Host: api.URL}, ctrl.Options{
			Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		}, options.Options{RunDir: dir, Registerer: registry, ProxyPort: ports[0], ProxyOpenPort: ports[1]})
		if err == nil {
			err = m.AddWatch(Watch{Watch: watches.Watch{GVK: schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: "A"}}, Engine: idleEngine{}})
		}
		if err != nil {
			t.Fatal(err)
		}
		managers = append(managers, m)
		if is, err := (*options.Error)(nil), m.Start(context.Background()); !errors.As(err, &is) || is.Field != "ctrl.Options.HealthProbeBindAddress" {
			t.Fatalf("want the address of the probes to be taken, and nothing else, got %v", err)
		}
	}
	runtime.KeepAlive(taken)
	runtime.KeepAlive(managers)
	if left, err := registry.Gather(); err != nil || len(left) > 0 {
		t.Errorf("metrics are left: %v, %v", left, err)
	}
}
