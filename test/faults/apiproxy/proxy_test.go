package apiproxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

const widgets = "/apis/g.io/v1/namespaces/ns/widgets"

// server is an API server that says yes to everything and remembers it.
type server struct {
	mu       sync.Mutex
	requests []string
	events   chan string // of the one watch
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests = append(s.requests, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if !r.URL.Query().Has("watch") {
		fmt.Fprintf(w, `{"said": %q}`, r.Method)
		return
	}
	flush := w.(http.Flusher).Flush
	flush()
	for {
		select {
		case e := <-s.events:
			fmt.Fprintln(w, e)
			flush()
		case <-r.Context().Done():
			return
		}
	}
}

func (s *server) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func start(t *testing.T) (*server, *Proxy) {
	t.Helper()
	upstream := &server{events: make(chan string, 10)}
	listening := httptest.NewServer(upstream)
	t.Cleanup(listening.Close)
	p, err := Start(&rest.Config{Host: listening.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return upstream, p
}

// ask sends one request on a connection of its own and gives status and body, or
// "broken".
func ask(t *testing.T, method, url, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "broken"
	}
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(response.StatusCode, " ", response.Header.Get("Retry-After"), " ", string(got))
}

func TestFaults(t *testing.T) {
	for name, test := range map[string]struct {
		fault         Fault
		wantClient    []string // parts of the answer
		wantForwarded bool
	}{
		"no fault at all":                {Fault{}, []string{`200  {"said": "PATCH"}`}, true},
		"a conflict":                     {Refuse(409), []string{"409  {", `"kind":"Status"`, `"reason":"Conflict"`}, false},
		"too many requests":              {Refuse(429), []string{"429 1 {", `"reason":"TooManyRequests"`}, false},
		"events that are gone":           {Refuse(410), []string{"410  {", `"reason":"Expired"`}, false},
		"a reset before anything":        {Fault{Withhold: true, Break: true}, []string{"broken"}, false},
		"an answer that is lost":         {Fault{Break: true}, []string{"broken"}, true},
		"a timeout":                      {Fault{Delay: time.Millisecond, Withhold: true, Code: 504}, []string{"504  {", `"reason":"Timeout"`}, false},
		"an object as it was":            {Fault{Withhold: true, Code: 200, Body: []byte(`{"old": 1}`)}, []string{`200  {"old": 1}`}, false},
		"a delay changes nothing itself": {Fault{Delay: time.Millisecond}, []string{`200  {"said": "PATCH"}`}, true},
	} {
		t.Run(name, func(t *testing.T) {
			upstream, p := start(t)
			noted := make(chan int, 2)
			note := func(Request) { noted <- len(upstream.got()) }
			test.fault.Before, test.fault.After = note, note
			p.Add(Rule{Match: func(r Request) bool { return r.Verb == "patch" }, Fault: test.fault})
			got := ask(t, "PATCH", p.URL()+widgets+"/w/status", "the body")
			for _, want := range test.wantClient {
				if !strings.Contains(got, want) {
					t.Errorf("the client got %q, want %q in it", got, want)
				}
			}
			want, upstreamCode, wantNoted := []string(nil), 0, []int{0, 0}
			if test.wantForwarded {
				want, upstreamCode, wantNoted = []string{"PATCH " + widgets + "/w/status the body"}, 200, []int{0, 1}
			}
			if diff := cmp.Diff(want, upstream.got()); diff != "" {
				t.Errorf("what the API server got (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(wantNoted, []int{<-noted, <-noted}); diff != "" {
				t.Errorf("requests forwarded before and after the fault (-want +got):\n%s", diff)
			}
			r := p.Journal()[0]
			if r.Upstream != upstreamCode || string(r.Body) != "the body" || r.Applied() != test.wantForwarded {
				t.Errorf("got %+v in the journal", r)
			}
		})
	}
}

func TestAway(t *testing.T) {
	upstream, p := start(t)
	lines := watching(t, p)
	back := p.Away()
	if line, open := <-lines; open {
		t.Errorf("got %s, want what is open to break", line)
	}
	if got := ask(t, "GET", p.URL()+widgets, ""); got != "broken" {
		t.Errorf("away: got %q", got)
	}
	back()
	back() // Counts once: another who has taken it away must not be thwarted.
	again := p.Away()
	if got := ask(t, "GET", p.URL()+widgets, ""); got != "broken" {
		t.Errorf("away again: got %q", got)
	}
	again()
	if got := ask(t, "GET", p.URL()+widgets, ""); got != `200  {"said": "GET"}` {
		t.Errorf("back: got %q", got)
	}
	if got := upstream.got(); len(got) != 2 {
		t.Errorf("the API server got %q, want the watch and the last request alone", got)
	}
}

// watching opens a watch through the proxy and gives its lines; the channel is
// closed when the watch breaks.
func watching(t *testing.T, p *Proxy) <-chan string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL()+widgets+"?watch=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: &http.Transport{}}).Do(request) //nolint:bodyclose // The reader of the lines closes it.
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the watch was answered with %s", response.Status)
	}
	lines := make(chan string, 10)
	go func() {
		defer func() { _ = response.Body.Close() }()
		defer close(lines)
		for s := bufio.NewScanner(response.Body); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return lines
}

func TestAWatchStandsStillUntilTheRelease(t *testing.T) {
	upstream, p := start(t)
	lines := watching(t, p)
	upstream.events <- `{"type":"BOOKMARK","object":"odd"}`
	got := []string{<-lines}
	met := make(chan bool, 10)
	release := p.Hold(func(r Request) bool {
		met <- true
		return r.Resource == "widgets"
	})
	upstream.events <- `{"number": 1}`
	upstream.events <- `{"number": 2}`
	<-met
	select {
	case line := <-lines:
		t.Errorf("%s came while the watch was held", line)
	default:
	}
	release()
	release() // Changes nothing more.
	got = append(got, <-lines, <-lines)
	if diff := cmp.Diff([]string{`{"type":"BOOKMARK","object":"odd"}`, `{"number": 1}`, `{"number": 2}`}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhoMissedEventsHasToListAnew(t *testing.T) {
	upstream, p := start(t)
	lines := watching(t, p)
	met := make(chan bool, 10)
	hidden := func(Request) bool {
		met <- true
		return true
	}
	p.Hide(hidden)() // A watch that missed nothing goes on.
	upstream.events <- `{"number": 1}`
	if got := <-lines; got != `{"number": 1}` {
		t.Errorf("got %s, want the event after the release", got)
	}
	release := p.Hide(hidden)
	upstream.events <- `{"number": 2}`
	upstream.events <- `{"number": 3}`
	<-met
	<-met
	release()
	if line, open := <-lines; open {
		t.Errorf("got %s, want the watch to break", line)
	}
	// The first watch after it is refused, and only that.
	if got := ask(t, "GET", p.URL()+widgets+"?watch=true", "")[:3]; got != "410" {
		t.Errorf("got %s, want 410", got)
	}
	watching(t, p)
}
