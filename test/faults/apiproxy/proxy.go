package apiproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// silent is the log of broken connections: this proxy is there for them.
func silent() *log.Logger { return log.New(io.Discard, "", 0) }

// Proxy is one client's way to an API server.
type Proxy struct {
	server    *http.Server
	address   string
	target    *url.URL
	transport http.RoundTripper
	resolver  apirequest.RequestInfoResolver

	mu      sync.Mutex
	journal []*Request
	rules   []*Rule
	watches []*watchRule
	away    int // how many have taken the API server away
	open    map[net.Conn]bool
}

// Start makes a proxy to the API server of config. It serves until Close.
func Start(config *rest.Config) (*Proxy, error) {
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the API server's address: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare the way to the API server: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the fault proxy: %w", err)
	}
	p := &Proxy{
		address: listener.Addr().String(), target: target, transport: transport, open: map[net.Conn]bool{},
		resolver: &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")},
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, ErrorLog: silent(), ConnState: p.connected}
	go func() { _ = p.server.Serve(listener) }() // It ends with Close, and says only that.
	return p, nil
}

// locked changes what the requests share.
func (p *Proxy) locked(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// Close ends the proxy and every connection through it.
func (p *Proxy) Close() error { return p.server.Close() }

// URL is the proxy's address.
func (p *Proxy) URL() string { return "http://" + p.address }

// WriteKubeconfig writes a kubeconfig that leads through the proxy.
func (p *Proxy) WriteKubeconfig(path string) error {
	const name = "faults"
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: p.URL()}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, Namespace: "default"}},
		CurrentContext: name,
	}, path)
	if err != nil {
		return fmt.Errorf("write the kubeconfig %q: %w", path, err)
	}
	return nil
}

// Away makes the API server unreachable: what is open breaks, and so does what
// comes until back is called.
func (p *Proxy) Away() (back func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away++
	for conn := range p.open {
		abort(conn)
	}
	return sync.OnceFunc(func() { p.locked(func() { p.away-- }) })
}

// connected keeps the connections that are open.
func (p *Proxy) connected(conn net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case state == http.StateNew && p.away > 0:
		abort(conn)
	case state == http.StateNew:
		p.open[conn] = true
	case state == http.StateClosed:
		delete(p.open, conn)
	}
}

// abort makes the other side see a reset, not an orderly end.
func abort(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // Without it the end is an orderly one, which is bad enough.
	}
	_ = conn.Close() // It may have ended by itself.
}

// ServeHTTP takes a request through its rule and on to the API server.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	entry, err := p.read(r)
	if err != nil {
		panic(http.ErrAbortHandler) // The client broke off within its request.
	}
	p.locked(func() {
		p.journal = append(p.journal, entry)
		entry.Seq = len(p.journal)
	})
	defer p.locked(func() { entry.Answered = time.Now() })
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	fault := p.meet(*entry)
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(p.target) },
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:      silent(),
		Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := p.pass(r, entry, fault)
			if err == nil && entry.Verb == "watch" && response.StatusCode == http.StatusOK {
				p.filter(ctx, cancel, response, *entry)
			}
			return response, err
		}),
	}
	forward.ServeHTTP(w, r.WithContext(ctx))
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// pass lets the request meet the fault.
func (p *Proxy) pass(r *http.Request, entry *Request, fault Fault) (response *http.Response, err error) {
	if fault.Before != nil {
		fault.Before(*entry)
	}
	<-time.After(fault.Delay)
	if !fault.Withhold {
		if response, err = p.ask(r, entry); err != nil {
			return nil, err
		}
	}
	if fault.After != nil {
		fault.After(*entry)
	}
	if !fault.Break && fault.Code == 0 {
		return response, nil
	}
	if response != nil {
		_ = response.Body.Close() // Nobody gets it.
	}
	if fault.Break {
		return nil, http.ErrAbortHandler
	}
	return fault.answer(), nil
}

// ask forwards the request. Answers come uncompressed, because they are read.
func (p *Proxy) ask(r *http.Request, entry *Request) (*http.Response, error) {
	r.Header.Del("Accept-Encoding")
	response, err := p.transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	var answer []byte
	if entry.Write() {
		answer, err = io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return nil, err
		}
		response.Body = io.NopCloser(bytes.NewReader(answer))
	}
	p.locked(func() { entry.Upstream, entry.Answer = response.StatusCode, answer })
	return response, nil
}

// read makes the journal's entry of a request, and leaves the body to be read again.
func (p *Proxy) read(r *http.Request) (*Request, error) {
	entry := &Request{Arrived: time.Now(), Verb: strings.ToLower(r.Method), Path: r.URL.Path, Query: r.URL.Query()}
	if info, err := p.resolver.NewRequestInfo(r); err == nil && info.IsResourceRequest {
		entry.Verb, entry.Namespace, entry.Name = info.Verb, info.Namespace, info.Name
		entry.Resource, entry.Subresource = info.Resource, info.Subresource
	}
	if !entry.Write() {
		return entry, nil
	}
	var err error
	if entry.Body, err = io.ReadAll(r.Body); err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(entry.Body))
	return entry, nil
}
