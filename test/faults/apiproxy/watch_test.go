package apiproxy

import (
	"bufio"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func configOf(t *testing.T, path string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func widgetEvent(name, version string) string {
	return fmt.Sprintf(`{"type":"MODIFIED","object":{"kind":"Widget","metadata":{"namespace":"ns","name":%q,"uid":"u","resourceVersion":%q,"generation":3,"deletionTimestamp":"t"}}}`, name, version)
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

func about(name string) func(Request, Event) bool {
	return func(_ Request, e Event) bool { return e.Name == name }
}

func TestEventsPassAsTheyAre(t *testing.T) {
	upstream, p := start(t)
	lines := watching(t, p)
	for _, line := range []string{widgetEvent("a", "1"), `{"type":"BOOKMARK","object":"odd"}`, widgetEvent("b", "2")} {
		upstream.events <- line
		if got := <-lines; got != line {
			t.Errorf("got %s, want %s", got, line)
		}
	}
}

func TestAWatchStandsStillUntilTheRelease(t *testing.T) {
	upstream, p := start(t)
	lines := watching(t, p)
	met := make(chan Event, 10)
	release := p.Watch(WatchRule{Match: func(r Request, e Event) bool {
		met <- e
		return r.Resource == "widgets" && e.Name == "held"
	}})
	want := []string{widgetEvent("before", "1"), widgetEvent("held", "2"), widgetEvent("behind", "3")}
	for _, line := range want {
		upstream.events <- line
	}
	got := []string{<-lines}
	<-met
	e := <-met
	e.Object = nil
	wantEvent := Event{Type: "MODIFIED", Kind: "Widget", Namespace: "ns", Name: "held", UID: "u", ResourceVersion: "2", Generation: 3, Deleting: true}
	if diff := cmp.Diff(wantEvent, e); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	select {
	case line := <-lines:
		t.Errorf("%s came while the watch was held", line)
	default:
	}
	release()
	release() // Changes nothing more.
	got = append(got, <-lines, <-lines)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhoMissedEventsHasToListAnew(t *testing.T) {
	upstream, p := start(t)
	lines := watching(t, p)
	release := p.Watch(WatchRule{Match: about("hidden"), Hide: true})
	upstream.events <- widgetEvent("hidden", "1")
	upstream.events <- widgetEvent("hidden", "2")
	upstream.events <- widgetEvent("other", "3")
	if got := <-lines; got != widgetEvent("other", "3") {
		t.Errorf("got %s, want the event that is not hidden", got)
	}
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

func TestAWatchThatMissedNothingGoesOn(t *testing.T) {
	upstream, p := start(t)
	lines := watching(t, p)
	p.Watch(WatchRule{Match: about("hidden"), Hide: true})()
	upstream.events <- widgetEvent("hidden", "1")
	if got := <-lines; got != widgetEvent("hidden", "1") {
		t.Errorf("got %s", got)
	}
}
