package runner

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

func TestAnIdleRunIsEnded(t *testing.T) {
	for name, fake := range map[string]string{
		"it sleeps and says nothing":            "sleep",
		"it does not even have its output open": "closed output",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fake)
			b.IdleTimeout = 2 * time.Second // A busy machine takes long to start a process.
			got := b.Run(t.Context(), someSpec(), ignore)
			want(t, got, jobevent.Failed, jobevent.ReasonTimeout)
			if !strings.HasPrefix(got.Outcome.Message, "the run was idle\nno job event and no output for 2s") {
				t.Errorf("got message %q", got.Outcome.Message)
			}
			b.wantGone()
		})
	}
}

func TestWhatIsHeardOfARunKeepsItGoing(t *testing.T) {
	for name, fake := range map[string]string{
		"job events":                 "chatty",
		"output that is no event":    "noisy",
		"what it writes as an error": "grumbling",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fake)
			b.IdleTimeout = 3 * time.Second / 2 // for a run of 2 s
			want(t, b.Run(t.Context(), someSpec(), ignore), jobevent.Succeeded, jobevent.ReasonSuccessful)
		})
	}
}

// A run that waits for its observer is not idle.
func TestASlowObserverDoesNotMakeARunIdle(t *testing.T) {
	b := newBench(t, "many")
	b.IdleTimeout = time.Second
	slow := sync.OnceFunc(func() { time.Sleep(2 * time.Second) })
	want(t, b.Run(t.Context(), someSpec(), func(jobevent.Event) { slow() }), jobevent.Succeeded, jobevent.ReasonSuccessful)
}
