package upstream

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	utilproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	clientmetadata "k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// lookTimeout bounds what is asked of the API server before a write is forwarded. The
// API server's own bound for such requests is longer, but somebody waits for the write.
const lookTimeout = 30 * time.Second

// Upstream is the way to one API server.
type Upstream struct {
	forward  http.Handler
	metadata clientmetadata.Interface
	whole    dynamic.Interface
	kinds    kinds
}

// New prepares the way to the API server as cfg describes it. Nothing is contacted.
// failed answers a request that got no answer.
func New(cfg *rest.Config, failed func(w http.ResponseWriter, err error)) (*Upstream, error) {
	target, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("find the API server %q: %w", cfg.Host, err)
	}
	direct, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("prepare the way to the API server %q: %w", cfg.Host, err)
	}
	upgrade, err := upgradeTransport(cfg)
	if err != nil {
		return nil, fmt.Errorf("prepare upgraded connections to the API server %q: %w", cfg.Host, err)
	}
	u := &Upstream{forward: forwarder(target, direct, upgrade, failed)}
	return u, u.addClients(cfg, &http.Client{Transport: direct})
}

func (u *Upstream) addClients(cfg *rest.Config, client *http.Client) (err error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // The writes themselves have no limit here either.
	if u.metadata, err = clientmetadata.NewForConfigAndClient(cfg, client); err != nil {
		return fmt.Errorf("prepare looking metadata up: %w", err)
	}
	if u.whole, err = dynamic.NewForConfigAndClient(cfg, client); err != nil {
		return fmt.Errorf("prepare looking objects up: %w", err)
	}
	if u.kinds.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(cfg, client); err != nil {
		return fmt.Errorf("prepare discovery: %w", err)
	}
	return nil
}

// ServeHTTP forwards the request.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) { u.forward.ServeHTTP(w, r) }

func forwarder(target *url.URL, direct http.RoundTripper, upgrade utilproxy.UpgradeRequestRoundTripper, failed failure) http.Handler {
	// The handler answers a GET with a redirect where the location has no path.
	// A base path (a cluster behind a gateway) stands before the request's own.
	basePath := strings.TrimSuffix(target.Path, "/")
	location := &url.URL{Scheme: target.Scheme, Host: target.Host, Path: basePath + "/"}
	handler := utilproxy.NewUpgradeAwareHandler(location, direct, false, false, failed)
	handler.UpgradeTransport = upgrade
	handler.UseRequestLocation = true
	handler.UseLocationHost = true
	handler.AppendLocationPath = basePath != ""
	return handler
}

// failure reports failures on the way to the API server.
type failure func(w http.ResponseWriter, err error)

// Error implements utilproxy.ErrorResponder.
func (f failure) Error(w http.ResponseWriter, _ *http.Request, err error) { f(w, err) }

// upgradeTransport carries exec, attach and port-forward. HTTP/2 cannot be
// upgraded, so its connections offer HTTP/1.1 only.
func upgradeTransport(cfg *rest.Config) (utilproxy.UpgradeRequestRoundTripper, error) {
	settings, err := cfg.TransportConfig()
	if err != nil {
		return nil, err
	}
	tlsConfig, err := transport.TLSConfigFor(settings)
	if err != nil {
		return nil, err
	}
	credentials, err := transport.HTTPWrappersForConfig(settings, utilproxy.MirrorRequest)
	if err != nil {
		return nil, err
	}
	connection := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: tlsConfig, TLSNextProto: noHTTP2(), DialContext: cfg.Dial}
	return utilproxy.NewUpgradeRequestRoundTripper(connection, credentials), nil
}

// noHTTP2 keeps an http.Transport from negotiating HTTP/2.
func noHTTP2() map[string]func(string, *tls.Conn) http.RoundTripper {
	return map[string]func(string, *tls.Conn) http.RoundTripper{}
}
