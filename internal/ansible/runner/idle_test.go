package runner

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/pkg/content"
)

func TestAnIdleRunIsEnded(t *testing.T) {
	for name, fake := range map[string]string{
		"it sleeps and says nothing":            "sleep",
		"it does not even have its output open": "closed output",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fake)
			got := b.runOnceReady(time.Second/2, func(_ *Spec, limit time.Duration) { b.IdleTimeout = limit })
			want(t, got, content.Failed, content.ReasonTimeout)
			if !strings.HasPrefix(got.Outcome.Message, fmt.Sprintf("the run was idle\nno job event and no output for %s", b.IdleTimeout)) {
				t.Errorf("got message %q", got.Outcome.Message)
			}
			b.wantGone()
		})
	}
}

// runsInSpite runs with an idle timeout, again with twice as much until the run succeeds: a busy
// machine may do nothing for long. A run for whom the timeout is always too short fails.
func (b *bench) runsInSpite(run func(limit time.Duration) Result) {
	b.t.Helper()
	var got Result
	for limit := time.Second / 2; limit < time.Minute; limit *= 2 {
		b.IdleTimeout = limit
		if got = run(limit); got.Outcome.Reason != content.ReasonTimeout {
			break
		}
	}
	want(b.t, got, content.Succeeded, content.ReasonSuccessful)
}

func TestWhatIsHeardOfARunKeepsItGoing(t *testing.T) {
	for name, fake := range map[string]string{
		"job events":                 "chatty",
		"output that is no event":    "noisy",
		"what it writes as an error": "grumbling",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fake)
			env := b.Env
			b.runsInSpite(func(limit time.Duration) Result {
				b.Env = append(slices.Clip(env), fmt.Sprintf("TALK=%s", 2*limit))
				return b.Run(t.Context(), someSpec(), ignore)
			})
		})
	}
}

// A run that waits for its observer is not idle.
func TestASlowObserverDoesNotMakeARunIdle(t *testing.T) {
	b := newBench(t, "many")
	b.runsInSpite(func(limit time.Duration) Result {
		slow := sync.OnceFunc(func() { time.Sleep(2 * limit) })
		return b.Run(t.Context(), someSpec(), func(jobevent.Event) { slow() })
	})
}
