package operator

import (
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// libraryLog is the log of controller-runtime and client-go. Once an orderly stop
// has ended all runs and written their statuses, what libraries call an error only
// says that they were told to stop: the end of leader election, a cache that was
// just being filled. Those lines are for debugging. What keeps the manager from an
// orderly end is returned by Run.
type libraryLog struct {
	logr.Logger
	stopping *atomic.Bool
}

func newLibraryLog(log logr.Logger) libraryLog {
	l := libraryLog{Logger: log, stopping: &atomic.Bool{}}
	if sink := log.GetSink(); sink != nil {
		l.Logger = logr.New(librarySink{sink, l.stopping})
	}
	return l
}

// install makes it the log of the libraries' parts that take none.
func (l libraryLog) install() {
	ctrl.SetLogger(l.Logger)
	klog.SetLogger(l.WithName("client-go"))
}

type librarySink struct {
	logr.LogSink
	stopping *atomic.Bool
}

// Init implements logr.LogSink: the sink below has been initialized.
func (librarySink) Init(logr.RuntimeInfo) {}

// Error implements logr.LogSink.
func (s librarySink) Error(err error, message string, keysAndValues ...any) {
	switch {
	case !s.stopping.Load():
		s.LogSink.Error(err, message, keysAndValues...)
	case s.Enabled(1):
		s.Info(1, message, append(keysAndValues, "error", err)...)
	}
}

// WithName implements logr.LogSink.
func (s librarySink) WithName(name string) logr.LogSink {
	return librarySink{s.LogSink.WithName(name), s.stopping}
}

// WithValues implements logr.LogSink.
func (s librarySink) WithValues(keysAndValues ...any) logr.LogSink {
	return librarySink{s.LogSink.WithValues(keysAndValues...), s.stopping}
}
