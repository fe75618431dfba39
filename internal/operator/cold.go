package operator

import (
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/watches"
)

const (
	// coldTime is how long the runs of a watch may be cold before that is told. The
	// servers for warm runs need a few seconds after a start, and after a change.
	coldTime = time.Minute
	// coldRuns is how many runs of a watch may be cold before that is told.
	coldRuns = 3
)

// coldWatches tells which watches have none but cold runs although they may be warm. It
// is a controller.Observer.
type coldWatches struct {
	reason func() string // why the last program was started cold
	show   func(gvk string, cold bool)
	now    func() time.Time
	log    logr.Logger

	mu sync.Mutex
	of map[string]*coldSeries // by watch, of those that may have warm runs
}

// coldSeries are cold runs of a watch with no warm one between them.
type coldSeries struct {
	runs  int
	began time.Time
	told  bool
}

func newColdWatches(list []watches.Watch) *coldWatches {
	c := &coldWatches{now: time.Now, of: map[string]*coldSeries{}}
	for i := range list {
		if list[i].Warm {
			c.of[list[i].GVK.String()] = &coldSeries{}
		}
	}
	return c
}

// RunStarted implements controller.Observer.
func (c *coldWatches) RunStarted(jobevent.Run) {}

// JobEvent implements controller.Observer.
func (c *coldWatches) JobEvent(jobevent.Run, jobevent.Event) {}

// RunEnded implements controller.Observer.
func (c *coldWatches) RunEnded(run jobevent.Run, outcome jobevent.Outcome, _ jobevent.Summary, elapsed time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.of[run.Watch]
	switch {
	case s == nil || outcome.Verdict == jobevent.Canceled: // A run may be canceled before it has become anything.
		return
	case run.Warm:
		*s = coldSeries{}
		c.show(run.Watch, false)
		return
	case s.runs == 0:
		s.began = c.now().Add(-elapsed)
	}
	s.runs++
	if s.told || s.runs < coldRuns || c.now().Sub(s.began) < coldTime {
		return
	}
	s.told = true
	c.show(run.Watch, true)
	reason := c.reason()
	c.log.Info("WARNING: the runs of a watch stay cold although they may be warm, and take seconds longer for it",
		"gvk", run.Watch, "runs", s.runs, "reason", reason, "remedy", coldRemedy(reason))
}

// coldRemedy says what helps against a reason for cold runs.
func coldRemedy(reason string) string {
	switch reason {
	case "starting":
		return "the servers for warm runs never get ready: give the operator more CPU and memory"
	case "log file":
		return "take log_path out of ansible.cfg, or ANSIBLE_LOG_PATH out of the environment: the operator's log has every task"
	default:
		return "docs/warm-runs.md says what the reason means; warm: false in watches.yaml where cold runs are meant"
	}
}
