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
func (p *Proxy) Hold(match func(Request) bool) (release func()) { return p.watch(match, nil) }

// Hide leaves out the events of watches whose requests match. At the release it breaks
// each watch that has missed some with "410 Gone": the client has to list again and sees
// only the last state, as after a long disconnection.
func (p *Proxy) Hide(match func(Request) bool) (release func()) {
	return p.watch(match, map[*stream]bool{})
}

type watchRule struct {
	match    func(Request) bool
	missed   map[*stream]bool // that events were hidden from; nil when the rule holds them
	released chan struct{}
}

func (p *Proxy) watch(match func(Request) bool, missed map[*stream]bool) (release func()) {
	added := &watchRule{match, missed, make(chan struct{})}
	p.locked(func() { p.watches = append(p.watches, added) })
	return sync.OnceFunc(func() {
		p.locked(func() { p.watches = slices.DeleteFunc(p.watches, func(rule *watchRule) bool { return rule == added }) })
		close(added.released)
		for s := range missed { // Nobody is added any more.
			s.expire()
		}
	})
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
func (s *stream) pass() (passes bool) {
	for {
		var wait <-chan struct{}
		s.proxy.locked(func() {
			i := slices.IndexFunc(s.proxy.watches, func(rule *watchRule) bool { return rule.match(s.request) })
			switch {
			case i < 0:
				passes = true
			case s.proxy.watches[i].missed == nil:
				wait = s.proxy.watches[i].released
			default:
				s.proxy.watches[i].missed[s] = true
			}
		})
		if wait == nil {
			return passes
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
		Match: func(r Request) bool {
			return r.Verb == "watch" && r.Path == s.request.Path && r.Query["sendInitialEvents"] == nil
		},
		Once:  true,
		Fault: Refuse(http.StatusGone),
	})
	s.cancel()
}
