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
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// errLost ends a forwarded request whose answer the client does not get.
var errLost = errors.New("the answer is lost")

// Proxy is one client's way to an API server.
type Proxy struct {
	server   *http.Server
	gate     *gate
	forward  *httputil.ReverseProxy
	resolver apirequest.RequestInfoResolver
	journal  *journal
	rules    rules
	watches  watchRules
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
		gate:    newGate(listener),
		journal: newJournal(),
		resolver: &apirequest.RequestInfoFactory{
			APIPrefixes:          sets.NewString("api", "apis"),
			GrouplessAPIPrefixes: sets.NewString("api"),
		},
	}
	silent := log.New(io.Discard, "", 0) // Broken connections are what this proxy is for.
	p.forward = &httputil.ReverseProxy{
		Rewrite:        rewrite(target),
		Transport:      transport,
		FlushInterval:  -1,
		ModifyResponse: p.answered,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:       silent,
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, ErrorLog: silent}
	go func() { _ = p.server.Serve(p.gate) }() // It ends with Close, and says only that.
	return p, nil
}

// rewrite leads a request to the API server. Its answers must come uncompressed,
// because events of watches are read.
func rewrite(target *url.URL) func(*httputil.ProxyRequest) {
	return func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Del("Accept-Encoding")
	}
}

// Close ends the proxy and every connection through it.
func (p *Proxy) Close() error {
	p.watches.close()
	err := p.server.Close()
	p.gate.cut()
	return err
}

// URL is the proxy's address.
func (p *Proxy) URL() string { return "http://" + p.gate.Addr().String() }

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

// Away makes the API server unreachable: what is open breaks, and nothing new is
// let in until back is called.
func (p *Proxy) Away() (back func()) { return p.gate.shut() }

// passage is a request on its way; it travels in the request's context.
type passage struct {
	entry *Request
	fault Fault
}

type passageKey struct{}

// ServeHTTP takes a request through its rule and on to the API server.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	entry, err := p.read(r)
	if err != nil {
		panic(http.ErrAbortHandler) // The client broke off within its request.
	}
	p.journal.add(entry)
	defer p.journal.update(func() { entry.Answered = time.Now() })
	passage := &passage{entry: entry}
	if rule := p.rules.meet(*entry); rule != nil {
		passage.fault = rule.Fault
		p.journal.update(func() { entry.Rule = rule.Name })
	}
	call(passage.fault.Before, entry)
	delay(r.Context(), passage.fault.Delay)
	if passage.fault.Withhold {
		call(passage.fault.After, entry)
		p.reply(w, entry, *passage.fault.Answer)
		return
	}
	p.forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), passageKey{}, passage)))
}

func call(hook func(Request), entry *Request) {
	if hook != nil {
		hook(*entry)
	}
}

func delay(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// read makes the journal's entry of a request, and leaves the body to be read again.
func (p *Proxy) read(r *http.Request) (*Request, error) {
	entry := &Request{Arrived: time.Now(), Verb: strings.ToLower(r.Method), Path: r.URL.Path, Query: r.URL.Query(), UserAgent: r.UserAgent()}
	if info, err := p.resolver.NewRequestInfo(r); err == nil && info.IsResourceRequest {
		entry.Verb, entry.Namespace, entry.Name = info.Verb, info.Namespace, info.Name
		entry.Group, entry.Version, entry.Resource, entry.Subresource = info.APIGroup, info.APIVersion, info.Resource, info.Subresource
	}
	if r.Header.Get("Upgrade") != "" || !entry.Write() {
		return entry, nil
	}
	var err error
	if entry.Body, err = io.ReadAll(r.Body); err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(entry.Body))
	return entry, nil
}

// answered sees the API server's answer before the client does.
func (p *Proxy) answered(response *http.Response) error {
	passage, ok := response.Request.Context().Value(passageKey{}).(*passage)
	if !ok {
		return errLost
	}
	entry, fault := passage.entry, passage.fault
	var answer []byte
	if entry.Write() && response.StatusCode != http.StatusSwitchingProtocols {
		var err error
		if answer, err = io.ReadAll(response.Body); err != nil {
			return err
		}
		response.Body = io.NopCloser(bytes.NewReader(answer))
	}
	p.journal.update(func() { entry.Upstream, entry.Answer = response.StatusCode, answer })
	call(fault.After, entry)
	if fault.Answer != nil {
		if fault.Answer.Code == 0 {
			return errLost
		}
		replace(response, *fault.Answer)
	}
	p.journal.update(func() { entry.Code = response.StatusCode })
	if entry.Verb == "watch" && response.StatusCode == http.StatusOK {
		p.filter(response, entry)
	}
	return nil
}
