package proxy

import (
	"io"
	"net/http"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
)

// ServeHTTP answers one request of a run.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	granted, done, ok := p.grants.authenticate(r)
	if !ok {
		w.Header().Set("Connection", "close") // It may be one of many that nobody may have.
		refuse(w, refusal(http.StatusUnauthorized, "no token of a live run: use the kubeconfig that KUBECONFIG of the run names"))
		return
	}
	defer done()
	ctx, cancel := granted.during(r.Context(), w)
	defer cancel()
	q := &request{Request: r.WithContext(ctx), session: granted.session}
	w = &severable{w, ctx}
	for _, step := range []func(http.ResponseWriter, *request) error{p.checkPath, p.resolve, p.strip, p.confine, p.held} {
		if err := step(w, q); err != nil {
			refuse(w, err)
			return
		}
	}
	if err := p.own(w, q); err != nil {
		refuse(w, err)
		return
	}
	p.forward(w, q)
}

func (p *Proxy) checkPath(_ http.ResponseWriter, q *request) error {
	return checkPath(q.URL)
}

// resolve reads what the request is about, as the API server will.
func (p *Proxy) resolve(_ http.ResponseWriter, q *request) (err error) {
	if q.info, err = p.resolver.NewRequestInfo(q.Request); err != nil {
		return refusal(http.StatusBadRequest, "%v", err)
	}
	return nil
}

// strip takes away what is not the client's to say.
func (p *Proxy) strip(_ http.ResponseWriter, q *request) error {
	stripIdentity(q.Header)
	q.Trailer = nil // Nobody reads trailers, and nothing must hide there.
	if q.writes() {
		stripUpgrade(q.Header)
	}
	return nil
}

// confine refuses what has effects outside of the owner's namespace.
func (p *Proxy) confine(_ http.ResponseWriter, q *request) error {
	owner := q.session.Owner
	if p.confines == nil || !q.hasEffects() || !p.confines(owner) {
		return nil
	}
	if q.info.IsResourceRequest {
		if owner.Namespace != "" && q.namespace() == owner.Namespace {
			return nil
		}
		itself, err := p.isOwner(q)
		if err != nil {
			return err
		}
		if itself {
			return nil
		}
	}
	return refusal(http.StatusForbidden, "runs for %s %s are confined (confineToNamespace) to %s, and %s %s is outside of it",
		owner.GVK.Kind, owner, space(owner), q.Method, q.URL.Path)
}

func space(owner access.Owner) string {
	if owner.Namespace == "" {
		return "the CR itself, which has no namespace"
	}
	return "the namespace " + owner.Namespace
}

// isOwner reports whether the request is about the owner itself.
func (p *Proxy) isOwner(q *request) (bool, error) {
	owner := q.session.Owner
	if q.info.APIGroup != owner.GVK.Group || q.info.Name != owner.Name || q.namespace() != owner.Namespace {
		return false, nil
	}
	kind, err := p.upstream.Kind(q.Context(), q.resource())
	if err != nil {
		return false, refusalOf(err)
	}
	return kind.Kind == owner.GVK.Kind, nil
}

// held refuses everything when another replica may be at work.
func (p *Proxy) held(http.ResponseWriter, *request) error {
	if p.fence != nil && !p.fence.Held() {
		return refusal(http.StatusServiceUnavailable, "this manager's lease is not surely held any more; another replica may be at work, and this run is being ended")
	}
	return nil
}

// forward sends the request on, and tells the followers of what it writes. The lease is
// asked for last, because bodies and followers may have taken their time.
func (p *Proxy) forward(w http.ResponseWriter, q *request) {
	report := p.follow(q)
	defer report.finish()
	if err := p.held(w, q); err != nil {
		refuse(report.listen(w), err)
		return
	}
	// The API server may answer before it has read the body, which the server here would
	// then close, and with it the stream to the API server. HTTP/2 needs no such word.
	_ = http.NewResponseController(w).EnableFullDuplex()
	// Who sends the request on may go on reading when the answer is through. The body's end
	// must not be seen after that: the server begins to wait for a hang-up when it is, and
	// can't read the connection's next request meanwhile.
	defer func(body io.Closer) { _ = body.Close() }(q.Body)
	p.log.V(2).Info("forwarding request", "verb", q.info.Verb, "path", q.URL.Path, "owner", q.session.Owner.String())
	p.upstream.ServeHTTP(report.listen(w), q.Request)
}
