package apiproxy

import (
	"slices"
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
	Verb                  string
	Resource, Subresource string
	// Name is that of the object, from the path; creates have none.
	Namespace, Name string
	Path            string
	Query           map[string][]string
	// Body is what a write says.
	Body []byte

	// Upstream is the API server's HTTP status, 0 if it was not asked or did not
	// answer; Answer is its body, of writes only.
	Upstream int
	Answer   []byte
}

// Write is true for a request that may change something.
func (r Request) Write() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection", "post", "put"}, r.Verb)
}

// Applied is true for a write that the API server accepted, whatever the client
// learnt of it.
func (r Request) Applied() bool { return r.Write() && r.Upstream >= 200 && r.Upstream < 300 }

// Journal returns all requests so far, in the order of their arrival.
func (p *Proxy) Journal() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]Request, len(p.journal))
	for i, r := range p.journal {
		list[i] = *r
	}
	return list
}
