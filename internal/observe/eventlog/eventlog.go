package eventlog

import (
	"io"
	"math"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

// Options are what a Log needs. The zero value logs nothing.
type Options struct {
	// Logger receives the lines.
	Logger logr.Logger
	// Blocks receives the blocks of the console form, each in one Write. It must
	// be the very writer that Logger's sink writes its lines to, and safe for
	// concurrent use, such as
	//
	//	stream := zapcore.Lock(zapcore.AddSync(os.Stderr))
	//
	// so that the lines of concurrent runs stand before or behind a block and
	// never in it. nil: no blocks.
	Blocks io.Writer
	// JSON puts a block in the field "block" of its task's line instead.
	JSON  bool
	Level Level
}

// Log is an observer of runs. Its methods may be called by several runs at once.
type Log struct {
	options Options
	repeats repeats
}

// New returns a Log with these options.
func New(o Options) *Log {
	if o.Logger.GetSink() == nil {
		o.Logger = logr.Discard()
	}
	return &Log{options: o}
}

// RunStarted writes the run's first line.
func (l *Log) RunStarted(run jobevent.Run) {
	values := []any{"cr", run.Object, "watch", run.Watch, "generation", run.Generation, "reason", run.Trigger, "run", run.ID}
	if run.Finalizer {
		l.options.Logger.Info("finalizer run started", values...)
		return
	}
	l.options.Logger.Info("run started", values...)
}

// JobEvent writes what the level shows of the event.
func (l *Log) JobEvent(run jobevent.Run, e jobevent.Event) {
	out := outcomeOf(e)
	if out == none || l.options.Level < out.level() {
		return
	}
	values := []any{"cr", run.Object, "watch", run.Watch, "task", oneLine(e.TaskName()), "host", oneLine(e.Host), "outcome", string(out), "seconds", seconds(e.Duration), "run", run.ID}
	if out.item() {
		l.options.Logger.Info("item", append(values, "item", item(e))...)
		return
	}
	text := ""
	if times := l.times(run, e, out); l.showsBlock(times) {
		text = taskText(e)
	} else if times > 1 {
		values = append(values, "asBefore", true, "times", times)
	}
	l.line(out, l.withBlock(values, text))
	l.block(run, text)
}

// times is how many runs in a row have failed like this, 0 for what is no failure.
func (l *Log) times(run jobevent.Run, e jobevent.Event, out outcome) int {
	if !out.failure() {
		return 0
	}
	return l.repeats.met(run, jobevent.FailureMessage(e))
}

// showsBlock reports whether a block is shown of what so many runs in a row have met.
func (l *Log) showsBlock(times int) bool { return times == 1 || l.options.Level == Everything }

// Forget drops what is remembered of a CR that is gone.
func (l *Log) Forget(watch, object string) { l.repeats.forget(watch, object) }

func (l *Log) line(out outcome, values []any) {
	switch out {
	case failed:
		l.options.Logger.Error(nil, "task failed", values...)
	case unreachable:
		l.options.Logger.Error(nil, "host unreachable", values...)
	case ignored:
		l.options.Logger.Info("task failed, which is ignored", values...)
	default:
		l.options.Logger.Info("task", values...)
	}
}

// RunEnded writes the run's last line, and what explains a failure that no
// task's block has explained.
func (l *Log) RunEnded(run jobevent.Run, outcome jobevent.Outcome, s jobevent.Summary, elapsed time.Duration) {
	values := []any{"cr", run.Object, "watch", run.Watch, "outcome", string(outcome.Verdict), "reason", string(outcome.Reason)}
	if outcome.Verdict == jobevent.Failed {
		values = append(values, "message", outcome.Message) // Before what fills the line.
	}
	values = append(values, "seconds", seconds(elapsed),
		"ok", s.OK, "changed", s.Changed, "skipped", s.Skipped, "failures", s.Failures,
		"unreachable", s.Unreachable, "rescued", s.Rescued, "ignored", s.Ignored)
	if s.RequeueAfter > 0 && outcome.Verdict == jobevent.Succeeded && !run.Finalizer {
		values = append(values, "requeueAfter", s.RequeueAfter.String())
	}
	switch outcome.Verdict {
	case jobevent.Succeeded:
		// The message is the ansible-operator base image's, which scripts look for.
		l.options.Logger.Info("run succeeded", append(values, "message", "Ansible-runner exited successfully", "run", run.ID)...)
	case jobevent.Canceled:
		l.options.Logger.Info("run canceled", append(values, "run", run.ID)...)
	default:
		l.options.Logger.Error(nil, "run failed", append(values, "run", run.ID)...)
		if len(s.Failed)+len(s.UnreachableHosts) == 0 && l.showsBlock(l.repeats.met(run, outcome.Message)) {
			l.block(run, outcome.Message)
		}
	}
	l.repeats.ended(run, outcome.Verdict == jobevent.Canceled)
}

func (l *Log) withBlock(values []any, text string) []any {
	if l.options.JSON && text != "" {
		return append(values, "block", text)
	}
	return values
}

// block writes a whole block at once; what the stream makes of it is beyond the
// log's powers, as with the log's lines.
func (l *Log) block(run jobevent.Run, text string) {
	if l.options.JSON || l.options.Blocks == nil || l.options.Level == Nothing || text == "" {
		return
	}
	_, _ = l.options.Blocks.Write(block(run.Object, text))
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }
