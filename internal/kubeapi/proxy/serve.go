package proxy

import (
	"io"
	"net/http"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy/upstream"
)

// ServeHTTP answers one request of a run.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	granted, done, ok := p.grants.authenticate(r)
	if !ok {
		w.Header().Set("Connection", "close") // Unauthenticated clients must not use up the connections.
		refuse(w, refusal(http.StatusUnauthorized, "unknown or expired token of a run: use the kubeconfig that KUBECONFIG of the run names"))
		return
	}
	defer done()
	ctx, cancel := granted.requestContext(upstream.As(r.Context(), granted.session.Username), w)
	defer cancel()
	q := &request{Request: r.WithContext(ctx), session: granted.session, ended: func(int) {}}
	answer := &answerWriter{cancelableWriter: &cancelableWriter{w, ctx}}
	w = answer
	defer func() { q.ended(answer.code) }()
	if p.isReport(q) {
		if err := p.takeReport(w, q); err != nil {
			refuse(w, err)
		}
		return
	}
	for _, step := range []func(http.ResponseWriter, *request) error{p.checkPath, p.resolve, p.observeRequest, checkSlash, p.checkImpersonation, p.stripHeaders, p.confine, p.checkFence} {
		if err := step(w, q); err != nil {
			refuse(w, err)
			return
		}
	}
	defer answer.reportDenial(q)
	for _, step := range []func(http.ResponseWriter, *request) error{p.reportReady, p.addOwner} {
		if err := step(w, q); err != nil {
			refuse(w, err)
			return
		}
	}
	p.forward(w, q)
}

// isReport reports whether the request is for the manager itself.
func (p *Proxy) isReport(q *request) bool {
	return p.report != nil && q.session.Release && q.Method == http.MethodPost && q.URL.Path == p.reportPath
}

// takeReport answers a report once the manager has taken it.
func (p *Proxy) takeReport(w http.ResponseWriter, q *request) error {
	if err := p.checkFence(w, q); err != nil {
		return err
	}
	body, err := p.readBody(w, q.Request)
	if err != nil {
		return err
	}
	if err := p.report(q.Context(), q.session.Owner, body); err != nil {
		return refusal(http.StatusConflict, "%v", err)
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

func (p *Proxy) checkPath(_ http.ResponseWriter, q *request) error {
	return checkPath(q.URL)
}

// resolve sets the request's info, by the API server's own code.
func (p *Proxy) resolve(_ http.ResponseWriter, q *request) (err error) {
	if q.info, err = p.resolver.NewRequestInfo(q.Request); err != nil {
		return refusal(http.StatusBadRequest, "%v", err)
	}
	return nil
}

// observeRequest tells the observer of the request, before anything may refuse it.
func (p *Proxy) observeRequest(_ http.ResponseWriter, q *request) error {
	if p.observe != nil {
		q.ended = p.observe(q.session, q.info)
	}
	return nil
}

// stripHeaders removes the headers that a client may not set.
func (p *Proxy) stripHeaders(_ http.ResponseWriter, q *request) error {
	stripIdentity(q.Header)
	q.Trailer = nil // The API server uses no trailers, and the proxy does not check them.
	if q.writes() {
		stripUpgrade(q.Header)
	}
	return nil
}

// confine refuses a request of a confined run that may have effects outside of the owner's
// namespace.
func (p *Proxy) confine(_ http.ResponseWriter, q *request) error {
	owner := q.session.Owner
	if p.isConfined == nil || !q.mayHaveEffects() || !p.isConfined(owner) {
		return nil
	}
	if q.info.IsResourceRequest {
		if owner.Namespace != "" && q.namespace() == owner.Namespace {
			return nil
		}
		isOwner, err := p.isOwner(q)
		if err != nil {
			return err
		}
		if isOwner {
			return nil
		}
	}
	return refusal(http.StatusForbidden, "runs for %s %s are confined (confineToNamespace) to %s, and %s %s is outside of it",
		owner.GVK.Kind, owner, writableScope(owner), q.Method, q.URL.Path)
}

func writableScope(owner access.Owner) string {
	if owner.Namespace == "" {
		return "the CR itself, which has no namespace"
	}
	return "the namespace " + owner.Namespace
}

func (p *Proxy) isOwner(q *request) (bool, error) {
	owner := q.session.Owner
	if q.info.APIGroup != owner.GVK.Group || q.info.Name != owner.Name || q.namespace() != owner.Namespace {
		return false, nil
	}
	kind, err := p.upstream.Kind(q.Context(), q.resource())
	if err != nil {
		return false, refusalOfAPIError(err)
	}
	return kind.Kind == owner.GVK.Kind, nil
}

// checkFence refuses each request once another replica may be the leader.
func (p *Proxy) checkFence(http.ResponseWriter, *request) error {
	if p.fence != nil && !p.fence.Held() {
		return refusal(http.StatusServiceUnavailable, "this manager may have lost its lease; another replica may lead, and this run is being ended")
	}
	return nil
}

// forward forwards the request and reports a write to the observers. It checks the fence again,
// because reading the body and calling the observers may have taken long.
func (p *Proxy) forward(w http.ResponseWriter, q *request) {
	report := p.reportWrite(q)
	defer report.finish()
	if err := p.checkFence(w, q); err != nil {
		report.refuse(w, err)
		return
	}
	// The API server may respond before it has read the body. Without full duplex, this server
	// would close the body then, and so the stream to the API server. HTTP/2 is always full
	// duplex.
	_ = http.NewResponseController(w).EnableFullDuplex()
	// The transport may go on reading the body after the response. At the body's end the server
	// starts to watch the connection for a hang-up, and would miss the next request there. So
	// the body is closed first.
	defer func(body io.Closer) { _ = body.Close() }(q.Body)
	p.log.V(2).Info("forwarding request", "verb", q.info.Verb, "path", q.URL.Path, "owner", q.session.Owner.String())
	p.upstream.ServeHTTP(report.record(w), q.Request)
}
