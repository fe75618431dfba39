// Package coldruns reports the watches whose runs stay cold although warm runs are enabled for
// them. It does not decide whether a run is warm, and does not influence runs.
package coldruns

import (
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/docslink"
	"github.com/ensign-operator/ensign/pkg/content"
)

const (
	// minDuration is how long the runs of a watch must have been cold to be reported. The servers
	// for warm runs need a few seconds after a start, and after a change of content.
	minDuration = time.Minute
	// minRuns is how many runs in a row must have been cold to be reported.
	minRuns = 3
)

// Options are the settings of an Observer.
type Options struct {
	// Watches are the watched kinds with warm runs enabled.
	Watches []schema.GroupVersionKind
	// Reason returns why the last program was started cold.
	Reason func() string
	// SetCold is called with true when the runs of a watch have stayed cold, and with false after
	// each warm run.
	SetCold func(watch schema.GroupVersionKind, cold bool)
	Logger  logr.Logger
}

// Observer reports the watches whose runs stay cold. It is a content.Observer.
type Observer struct {
	content.ObserverDefaults
	Options

	now func() time.Time

	mu      sync.Mutex
	streaks map[schema.GroupVersionKind]*streak // by watch
}

// streak counts the cold runs of a watch since its last warm one.
type streak struct {
	runs     int
	start    time.Time // of the first of the runs
	reported bool
}

// New returns an Observer that has seen no runs.
func New(o Options) *Observer {
	c := &Observer{Options: o, now: time.Now, streaks: map[schema.GroupVersionKind]*streak{}}
	for _, watch := range o.Watches {
		c.streaks[watch] = &streak{}
	}
	return c
}

// RunEnded implements content.Observer.
func (c *Observer) RunEnded(run content.Run, result content.Result, elapsed time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streaks[run.Watch]
	switch {
	case s == nil || result.Outcome.Verdict == content.Canceled: // A run may be canceled before it is cold or warm.
		return
	case result.Account.Start == jobevent.StartWarm:
		*s = streak{}
		c.SetCold(run.Watch, false)
		return
	case s.runs == 0:
		s.start = c.now().Add(-elapsed)
	}
	s.runs++
	if s.reported || s.runs < minRuns || c.now().Sub(s.start) < minDuration {
		return
	}
	s.reported = true
	c.SetCold(run.Watch, true)
	reason := c.Reason()
	c.Logger.Info("WARNING: warm runs are on, but the runs of this watch are all cold, and each takes seconds longer",
		"gvk", run.Watch.String(), "runs", s.runs, "reason", reason, "remedy", remedy(reason))
}

// remedy returns an administrator's remedy for cold runs with this reason.
func remedy(reason string) string {
	switch reason {
	case "starting":
		return "the server for warm runs never gets ready: give the operator more CPU and memory"
	case "log file":
		return "take log_path out of ansible.cfg, or ANSIBLE_LOG_PATH out of the environment: the operator's log has every task"
	default:
		return docslink.ColdStarts.URL() + " explains the reason; to accept cold runs, set warm: false in watches.yaml"
	}
}
