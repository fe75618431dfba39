package apiproxy

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"sync"
)

// errExpired breaks a watch that has missed events.
var errExpired = errors.New("the watch has missed events")

// Event is one event of a watch.
type Event struct {
	// Type is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
	Type                       string
	Kind, Namespace, Name, UID string
	ResourceVersion            string
	Generation                 int64
	Deleting                   bool
	Object                     json.RawMessage
}

// WatchRule says which events of watches do not reach the client as they come.
// Only watches that speak JSON are read.
type WatchRule struct {
	// Match sees each event, with the request that opened the watch.
	Match func(Request, Event) bool
	// Hide leaves the matching events out, and breaks the watch with "410 Gone" when
	// the rule is released: the client has to list anew and sees the last state
	// only, as after a long disconnection. Otherwise the watch stands still at the
	// first matching event until the release, as with a slow API server.
	Hide bool
}

// watchRules are those of a proxy.
type watchRules struct {
	mu     sync.Mutex
	active []*activeRule
}

type activeRule struct {
	WatchRule

	released chan struct{}
}

// Watch puts a rule behind those that are there. Its release lets go what it
// holds, and must be called once.
func (p *Proxy) Watch(rule WatchRule) (release func()) {
	added := &activeRule{WatchRule: rule, released: make(chan struct{})}
	ws := &p.watches
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.active = append(ws.active, added)
	return func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		if i := slices.Index(ws.active, added); i >= 0 {
			ws.active = slices.Delete(ws.active, i, i+1)
			close(added.released)
		}
	}
}

// meet returns the rule that an event meets, nil if none does.
func (ws *watchRules) meet(r Request, e Event) *activeRule {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, rule := range ws.active {
		if rule.Match(r, e) {
			return rule
		}
	}
	return nil
}

func (ws *watchRules) close() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, rule := range ws.active {
		close(rule.released)
	}
	ws.active = nil
}

// filter puts a stream between the API server's events and the client.
func (p *Proxy) filter(response *http.Response, entry *Request) {
	if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return
	}
	out, in := io.Pipe()
	s := &stream{proxy: p, request: *entry, upstream: response.Body, client: in, broken: make(chan struct{}), missed: map[*activeRule]bool{}}
	response.Body = &filtered{PipeReader: out, upstream: s.upstream, broken: s.broken}
	go s.run()
}

// filtered is the body that the client reads. Its end is the stream's.
type filtered struct {
	*io.PipeReader

	upstream io.Closer
	once     sync.Once
	broken   chan struct{}
}

func (f *filtered) Close() error {
	f.once.Do(func() { close(f.broken) })
	return errors.Join(f.PipeReader.Close(), f.upstream.Close())
}

// stream carries the events of one watch.
type stream struct {
	proxy    *Proxy
	request  Request
	upstream io.ReadCloser
	client   *io.PipeWriter
	broken   chan struct{} // closed when the client is gone
	missed   map[*activeRule]bool
}

func (s *stream) run() {
	decoder := json.NewDecoder(s.upstream)
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			_ = s.client.CloseWithError(err) // It gives no error.
			return
		}
		if !s.pass(readEvent(raw)) {
			continue
		}
		if _, err := s.client.Write(append(raw, '\n')); err != nil {
			return // The client has closed.
		}
	}
}

// pass waits until the event may go on; it is false for one that may not.
func (s *stream) pass(event Event) bool {
	for {
		rule := s.proxy.watches.meet(s.request, event)
		switch {
		case rule == nil:
			return true
		case rule.Hide:
			s.hidden(rule)
			return false
		}
		select {
		case <-rule.released:
		case <-s.broken:
			return false
		}
	}
}

// hidden notes that the client missed an event.
func (s *stream) hidden(rule *activeRule) {
	if !s.missed[rule] {
		s.missed[rule] = true
		go s.expire(rule)
	}
}

// expire breaks the watch when the rule is released. The client's next watch of
// the same is refused, so that it has to list anew.
func (s *stream) expire(rule *activeRule) {
	select {
	case <-s.broken:
		return
	case <-rule.released:
	}
	s.proxy.Add(Rule{
		Name: "the watch has missed events",
		Match: func(r Request) bool {
			return r.Verb == "watch" && r.Path == s.request.Path && r.Query["sendInitialEvents"] == nil
		},
		Fault: Refuse(http.StatusGone),
	})
	_ = s.client.CloseWithError(errExpired) // It gives no error.
}

func readEvent(raw []byte) Event {
	var line struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	var object struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Namespace         string  `json:"namespace"`
			Name              string  `json:"name"`
			UID               string  `json:"uid"`
			ResourceVersion   string  `json:"resourceVersion"`
			Generation        int64   `json:"generation"`
			DeletionTimestamp *string `json:"deletionTimestamp"`
		} `json:"metadata"`
	}
	// What is no event matches nothing and passes as it is.
	if json.Unmarshal(raw, &line) != nil || json.Unmarshal(line.Object, &object) != nil {
		return Event{}
	}
	m := object.Metadata
	return Event{
		Type: line.Type, Kind: object.Kind, Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		Generation: m.Generation, Deleting: m.DeletionTimestamp != nil, Object: line.Object,
	}
}
