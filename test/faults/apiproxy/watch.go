package apiproxy

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"slices"
	"sync"
)

// Hold lets the watches whose requests match stand still at their next event until
// the release, as with a slow API server. Only watches that speak JSON are read.
func (p *Proxy) Hold(match func(Request) bool) (release func()) { return p.watches.add(match, nil) }

// Hide leaves the events of watches out whose requests match, and breaks a watch
// that has missed some with "410 Gone" at the release: the client has to list anew
// and sees the last state only, as after a long disconnection.
func (p *Proxy) Hide(match func(Request) bool) (release func()) {
	return p.watches.add(match, map[*stream]bool{})
}

// watchRules are those of a proxy.
type watchRules struct {
	mu     sync.Mutex
	active []*watchRule
}

type watchRule struct {
	match    func(Request) bool
	missed   map[*stream]bool // that events were hidden from; nil when the rule holds them
	released chan struct{}
}

func (ws *watchRules) add(match func(Request) bool, missed map[*stream]bool) (release func()) {
	added := &watchRule{match, missed, make(chan struct{})}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.active = append(ws.active, added)
	return sync.OnceFunc(func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		ws.active = slices.DeleteFunc(ws.active, func(rule *watchRule) bool { return rule == added })
		close(added.released)
		for s := range missed {
			s.expire()
		}
	})
}

// meet decides about the next event of a watch: it is to wait for a channel first,
// if there is one, or it is hidden.
func (ws *watchRules) meet(s *stream) (wait <-chan struct{}, hidden bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	i := slices.IndexFunc(ws.active, func(rule *watchRule) bool { return rule.match(s.request) })
	switch {
	case i < 0:
		return nil, false
	case ws.active[i].missed == nil:
		return ws.active[i].released, false
	default:
		ws.active[i].missed[s] = true
		return nil, true
	}
}

// stream is the answer to a watch, event by event.
type stream struct {
	io.Closer

	ctx     context.Context //nolint:containedctx // It is the request's: it ends with the client, or when the watch expires.
	cancel  context.CancelFunc
	proxy   *Proxy
	request Request
	events  *json.Decoder
	rest    []byte // of the event that is being read
}

// filter puts a stream between the API server's events and the client.
func (p *Proxy) filter(ctx context.Context, cancel context.CancelFunc, response *http.Response, request Request) {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err == nil && kind == "application/json" {
		response.Body = &stream{Closer: response.Body, ctx: ctx, cancel: cancel, proxy: p, request: request, events: json.NewDecoder(response.Body)}
	}
}

// Read returns events that may pass.
func (s *stream) Read(into []byte) (int, error) {
	for len(s.rest) == 0 {
		var event json.RawMessage
		if err := s.events.Decode(&event); err != nil {
			return 0, err
		}
		if s.pass() {
			s.rest = append([]byte(event), '\n')
		}
	}
	n := copy(into, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// pass waits until an event may go on; it is false for one that may not.
func (s *stream) pass() bool {
	for {
		wait, hidden := s.proxy.watches.meet(s)
		if wait == nil {
			return !hidden
		}
		select {
		case <-wait:
		case <-s.ctx.Done():
			return false
		}
	}
}

// expire breaks the watch, if the client still has it. The client's next watch of
// the same is refused, so that it has to list anew.
func (s *stream) expire() {
	if s.ctx.Err() != nil {
		return
	}
	s.proxy.Add(Rule{
		Name: "the watch has missed events",
		Match: func(r Request) bool {
			return r.Verb == "watch" && r.Path == s.request.Path && r.Query["sendInitialEvents"] == nil
		},
		Once:  true,
		Fault: Refuse(http.StatusGone),
	})
	s.cancel()
}
