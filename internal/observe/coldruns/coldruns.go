// Package coldruns tells of watches whose runs stay cold although they may be warm.
package coldruns

import (
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

const (
	// leastTime is how long the runs of a watch may be cold before that is told. The
	// servers for warm runs need a few seconds after a start, and after a change.
	leastTime = time.Minute
	// leastRuns is how many runs of a watch may be cold before that is told.
	leastRuns = 3
)

// Options are what an Observer needs.
type Options struct {
	// Watches are those that may have warm runs, as jobevent.Run names them.
	Watches []string
	// Reason returns why the last program was started cold.
	Reason func() string
	// Show is told when the runs of a watch have stayed cold, and when one is warm again.
	Show   func(watch string, cold bool)
	Logger logr.Logger
}

// Observer tells which watches have none but cold runs although they may be warm. It
// is a controller.Observer.
type Observer struct {
	Options

	now func() time.Time

	mu sync.Mutex
	of map[string]*series // by watch
}

// series are cold runs of a watch with no warm one between them.
type series struct {
	runs  int
	began time.Time
	told  bool
}

// New returns an observer that has seen no run.
func New(o Options) *Observer {
	c := &Observer{Options: o, now: time.Now, of: map[string]*series{}}
	for _, watch := range o.Watches {
		c.of[watch] = &series{}
	}
	return c
}

// RunStarted implements controller.Observer.
func (c *Observer) RunStarted(jobevent.Run) {}

// JobEvent implements controller.Observer.
func (c *Observer) JobEvent(jobevent.Run, jobevent.Event) {}

// RunEnded implements controller.Observer.
func (c *Observer) RunEnded(run jobevent.Run, outcome jobevent.Outcome, _ jobevent.Summary, elapsed time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.of[run.Watch]
	switch {
	case s == nil || outcome.Verdict == jobevent.Canceled: // A run may be canceled before it has become anything.
		return
	case run.Warm:
		*s = series{}
		c.Show(run.Watch, false)
		return
	case s.runs == 0:
		s.began = c.now().Add(-elapsed)
	}
	s.runs++
	if s.told || s.runs < leastRuns || c.now().Sub(s.began) < leastTime {
		return
	}
	s.told = true
	c.Show(run.Watch, true)
	reason := c.Reason()
	c.Logger.Info("WARNING: the runs of a watch stay cold although they may be warm, and take seconds longer for it",
		"gvk", run.Watch, "runs", s.runs, "reason", reason, "remedy", remedy(reason))
}

// remedy says what helps against a reason for cold runs.
func remedy(reason string) string {
	switch reason {
	case "starting":
		return "the servers for warm runs never get ready: give the operator more CPU and memory"
	case "log file":
		return "take log_path out of ansible.cfg, or ANSIBLE_LOG_PATH out of the environment: the operator's log has every task"
	default:
		return "docs/warm-runs.md says what the reason means; warm: false in watches.yaml where cold runs are meant"
	}
}
