package apiproxy

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Request is what the journal keeps of one request.
type Request struct {
	// Seq counts the requests of a proxy from 1, in the order of their arrival.
	Seq     int
	Arrived time.Time
	// Answered is when the client had its answer, or the loss of it; zero before. A
	// watch is answered when it has ended.
	Answered time.Time

	// Verb is Kubernetes' (get, list, watch, create, update, patch, delete,
	// deletecollection), or the lower-case HTTP method of what is no resource.
	Verb                                  string
	Group, Version, Resource, Subresource string
	// Name is that of the object, from the path; creates have none.
	Namespace, Name string
	Path            string
	Query           map[string][]string
	UserAgent       string
	// Body is what a write says.
	Body []byte

	// Rule is the name of the rule that acted on it, if one did.
	Rule string
	// Upstream is the API server's HTTP status, 0 if it was not asked or did not
	// answer; Answer is its body, of writes only.
	Upstream int
	Answer   []byte
	// Code is the HTTP status that the client got, 0 if it got none.
	Code int
}

// Write is true for a request that may change something.
func (r Request) Write() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection", http.MethodPost, http.MethodPut}, r.Verb)
}

// Applied is true for a write that the API server accepted, whatever the client
// learnt of it.
func (r Request) Applied() bool { return r.Write() && r.Upstream >= 200 && r.Upstream < 300 }

// journal holds the requests in the order of their arrival.
type journal struct {
	mu      sync.Mutex
	entries []*Request
	changed chan struct{} // closed and made anew with each change
}

func newJournal() *journal { return &journal{changed: make(chan struct{})} }

// add numbers the request.
func (j *journal) add(r *Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, r)
	r.Seq = len(j.entries)
	j.announce()
}

// update changes an entry.
func (j *journal) update(change func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change()
	j.announce()
}

func (j *journal) announce() {
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *journal) snapshot() ([]Request, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := make([]Request, len(j.entries))
	for i, r := range j.entries {
		list[i] = *r
	}
	return list, j.changed
}

// Journal returns all requests so far, in the order of their arrival.
func (p *Proxy) Journal() []Request {
	list, _ := p.journal.snapshot()
	return list
}

// Wait returns the first request, past or future, that matches in the state that
// it is in by then; match may look at the answer. It fails when ctx ends first.
func (p *Proxy) Wait(ctx context.Context, match func(Request) bool) (Request, error) {
	for {
		list, changed := p.journal.snapshot()
		if i := slices.IndexFunc(list, match); i >= 0 {
			return list[i], nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Request{}, context.Cause(ctx)
		}
	}
}
