package eventlog

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/observe/terminal"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Options are the settings of a Log. The zero value logs nothing.
type Options struct {
	// Logger receives the lines.
	Logger logr.Logger
	// Blocks receives the task output of the console format, that of a task in one Write; nil
	// means no task output. It
	// must be the writer to which Logger's sink writes its lines, and safe for concurrent use:
	//
	//	stream := zapcore.Lock(zapcore.AddSync(os.Stderr))
	//
	// So no line of a concurrent run comes in between the lines of a task's output.
	Blocks io.Writer
	// JSON puts task output into the field `block` of its task's line instead of writing it to Blocks.
	JSON  bool
	Level Level
	// Screen, if set, shows the runs instead of Logger, which says then only how much is shown.
	Screen *Screen
}

// Log is an observer that logs runs of any kind of content, and the job events of those that have them. It is safe for concurrent use.
type Log struct {
	content.ObserverDefaults

	options  Options
	failures failureHistory
}

// New returns a Log with these options.
func New(o Options) *Log {
	if o.Logger.GetSink() == nil {
		o.Logger = logr.Discard()
	}
	return &Log{options: o}
}

// RunStarted implements content.Observer: it logs the start of a run.
func (l *Log) RunStarted(run content.Run) {
	if l.options.Screen != nil {
		if l.options.Logger.Enabled() {
			l.options.Screen.RunStarted(run)
		}
		return
	}
	values := []any{"cr", run.Object, "watch", run.Watch.String(), "generation", run.Generation, "reason", run.Trigger}
	values = append(values, ids(run)...)
	if run.Finalizer {
		l.options.Logger.Info("finalizer run started", values...)
		return
	}
	l.options.Logger.Info("run started", values...)
}

// JobEvent implements engine.Observer: it logs the event of a task as the level demands.
func (l *Log) JobEvent(run content.Run, e jobevent.Event) {
	out := outcomeOf(e)
	if out == noOutcome || l.options.Level < out.minLevel() {
		return
	}
	if l.options.Screen != nil {
		l.draw(*l.options.Screen, run, e, out)
		return
	}
	values := []any{"cr", run.Object, "watch", run.Watch.String(), "task", terminal.OneLine(e.TaskName()), "host", terminal.OneLine(e.Host), "outcome", string(out), "seconds", seconds(e.Duration)}
	values = append(values, ids(run)...)
	if out.isItem() {
		l.options.Logger.Info("item", append(values, "item", itemLabel(e))...)
		return
	}
	text := ""
	if times := l.failureCount(run, e, out); l.showsBlock(times) {
		text = taskText(e)
	} else if times > 1 {
		values = append(values, "asBefore", true, "times", times)
	}
	l.logTask(out, l.withBlock(values, text))
	l.writeBlock(TaskHeading, run.Object, text)
}

// draw shows a task on the screen, with the texts that JobEvent logs.
func (l *Log) draw(s Screen, run content.Run, e jobevent.Event, out outcome) {
	if !out.isFailure() && !l.options.Logger.Enabled() {
		return
	}
	below := ""
	if !out.isItem() {
		if times := l.failureCount(run, e, out); l.showsBlock(times) {
			below = Below(e)
		} else if times > 1 {
			below = fmt.Sprintf("as before, in %d runs now", times)
		}
	}
	s.Task(run, e, below)
}

// failureCount returns how many runs in a row have had this failure; 0 if the outcome is not a
// failure.
func (l *Log) failureCount(run content.Run, e jobevent.Event, out outcome) int {
	if !out.isFailure() {
		return 0
	}
	return l.failures.count(run, jobevent.FailureMessage(e))
}

// showsBlock reports whether the log shows the task output of a failure that this many runs in a
// row have had.
func (l *Log) showsBlock(times int) bool { return times == 1 || l.options.Level == Everything }

// Forget drops the failures of a deleted CR.
func (l *Log) Forget(watch schema.GroupVersionKind, object string) { l.failures.forget(watch, object) }

func (l *Log) logTask(out outcome, values []any) {
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

// RunEnded implements content.Observer: it logs the end of a run. If the run failed and nothing
// has shown why, it also shows the outcome's message in the form of task output.
func (l *Log) RunEnded(run content.Run, result content.Result, elapsed time.Duration) {
	outcome := result.Outcome
	defer l.failures.runEnded(run, outcome.Verdict == content.Canceled)
	if l.options.Screen != nil {
		if outcome.Verdict == content.Failed || l.options.Logger.Enabled() {
			l.options.Screen.RunEnded(run, result, elapsed)
		}
		return
	}
	values := append(lastLine(run, result, elapsed), ids(run)...)
	if result.Detached {
		l.options.Logger.Info("the run goes on in its Job, for the next manager", append([]any{"cr", run.Object, "watch", run.Watch.String()}, ids(run)...)...)
		return
	}
	switch outcome.Verdict {
	case content.Succeeded:
		l.options.Logger.Info("run succeeded", values...)
	case content.Canceled:
		l.options.Logger.Info("run canceled", values...)
	default:
		l.options.Logger.Error(nil, "run failed", values...)
		if !result.Account.AlreadyLogged && l.showsBlock(l.failures.count(run, outcome.Message)) {
			l.writeBlock(run.Heading, run.Object, outcome.Message)
		}
	}
}

// ids returns the values by which the lines of a run, and its trace if there is one, are found.
func ids(run content.Run) []any {
	if run.TraceID == "" {
		return []any{"run", run.ID}
	}
	return []any{"run", run.ID, "trace_id", run.TraceID}
}

// lastLine returns the values of a run's last line.
func lastLine(run content.Run, result content.Result, elapsed time.Duration) []any {
	outcome := result.Outcome
	values := []any{"cr", run.Object, "watch", run.Watch.String(), "outcome", string(outcome.Verdict), "reason", string(outcome.Reason)}
	if outcome.Verdict != content.Succeeded {
		values = append(values, "message", outcome.Message) // It comes early because the line is long.
	}
	values = append(values, "seconds", seconds(elapsed))
	for _, n := range result.Account.Numbers {
		values = append(values, n.Name, n.Value)
	}
	if outcome.Verdict == content.Succeeded {
		if result.RequeueAfter > 0 && !run.Finalizer {
			values = append(values, "requeueAfter", result.RequeueAfter.String())
		}
		if outcome.Message != "" {
			values = append(values, "message", outcome.Message)
		}
	}
	return values
}

func (l *Log) withBlock(values []any, text string) []any {
	if l.options.JSON && text != "" {
		return append(values, "block", text)
	}
	return values
}

// writeBlock writes task output, or a run's message, in one Write. Like the log's lines, it has nowhere to report an error.
func (l *Log) writeBlock(heading, object, text string) {
	if l.options.JSON || l.options.Blocks == nil || l.options.Level == Nothing || text == "" {
		return
	}
	_, _ = l.options.Blocks.Write(block(heading, object, text))
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }
