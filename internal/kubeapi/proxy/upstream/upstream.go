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

// lookupTimeout bounds a look-up at the API server. The API server's own limit is longer, but
// the write of a client waits for the look-up.
const lookupTimeout = 30 * time.Second

// Upstream sends requests to one API server.
type Upstream struct {
	forward  http.Handler
	metadata clientmetadata.Interface
	objects  dynamic.Interface
	kinds    kindCache
}

// New returns an Upstream for the API server of cfg. It does not contact the API server. onError
// responds to a forwarded request that got no response.
func New(cfg *rest.Config, onError func(w http.ResponseWriter, err error)) (*Upstream, error) {
	target, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("find the API server %q: %w", cfg.Host, err)
	}
	direct, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("prepare the transport to the API server %q: %w", cfg.Host, err)
	}
	upgrade, err := upgradeTransport(cfg)
	if err != nil {
		return nil, fmt.Errorf("prepare upgraded connections to the API server %q: %w", cfg.Host, err)
	}
	direct = inNames{direct}
	u := &Upstream{forward: forwarder(target, direct, upgrade, onError)}
	return u, u.addClients(cfg, &http.Client{Transport: direct})
}

func (u *Upstream) addClients(cfg *rest.Config, client *http.Client) (err error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // Forwarded requests have no client-side limit either.
	if u.metadata, err = clientmetadata.NewForConfigAndClient(cfg, client); err != nil {
		return fmt.Errorf("prepare looking metadata up: %w", err)
	}
	if u.objects, err = dynamic.NewForConfigAndClient(cfg, client); err != nil {
		return fmt.Errorf("prepare looking objects up: %w", err)
	}
	if u.kinds.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(cfg, client); err != nil {
		return fmt.Errorf("prepare discovery: %w", err)
	}
	return nil
}

// ServeHTTP forwards the request.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) { u.forward.ServeHTTP(w, r) }

func forwarder(target *url.URL, direct http.RoundTripper, upgrade utilproxy.UpgradeRequestRoundTripper, onError errorResponder) http.Handler {
	// The handler responds to a GET with a redirect if the location has no path. A base path, of
	// a cluster behind a gateway, comes before the request's path.
	basePath := strings.TrimSuffix(target.Path, "/")
	location := &url.URL{Scheme: target.Scheme, Host: target.Host, Path: basePath + "/"}
	handler := utilproxy.NewUpgradeAwareHandler(location, direct, false, false, onError)
	handler.UpgradeTransport = upgrade
	handler.UseRequestLocation = true
	handler.UseLocationHost = true
	handler.AppendLocationPath = basePath != ""
	return handler
}

// errorResponder is a function as a utilproxy.ErrorResponder.
type errorResponder func(w http.ResponseWriter, err error)

// Error implements utilproxy.ErrorResponder.
func (f errorResponder) Error(w http.ResponseWriter, _ *http.Request, err error) { f(w, err) }

// upgradeTransport returns the transport for exec, attach and port-forward. It uses HTTP/1.1,
// because HTTP/2 connections cannot be upgraded.
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
	connection := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: tlsConfig, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}, DialContext: cfg.Dial}
	return utilproxy.NewUpgradeRequestRoundTripper(connection, inNames{credentials}), nil
}
