package operator

import (
	"sync/atomic"

	"github.com/go-logr/logr"
)

// libraryLog is the log of controller-runtime and client-go. While stopping is true, their
// errors become debug lines: an orderly stop has ended all runs and written their statuses,
// and the libraries report only that they were stopped. An error that prevents an orderly
// end is returned by Run.
type libraryLog struct {
	logr.Logger
	stopping *atomic.Bool
}

// LibraryLog returns the log for libraries. A manager that is given it as ctrl.Options.Logger
// writes its own messages to the log itself. So a program can set it for the parts of the libraries
// that take no logger, with ctrl.SetLogger and klog.SetLogger.
func LibraryLog(log logr.Logger) logr.Logger { return newLibraryLog(log).Logger }

func newLibraryLog(log logr.Logger) libraryLog {
	l := libraryLog{Logger: log, stopping: &atomic.Bool{}}
	if sink := log.GetSink(); sink != nil {
		l.Logger = logr.New(librarySink{sink, l.stopping})
	}
	return l
}

// splitLog returns the log for libraries and that of the manager.
func splitLog(given logr.Logger) (libraryLog, logr.Logger) {
	if sink, ok := given.GetSink().(librarySink); ok {
		return libraryLog{Logger: given, stopping: sink.stopping}, given.WithSink(sink.LogSink)
	}
	return newLibraryLog(given), given
}

type librarySink struct {
	logr.LogSink
	stopping *atomic.Bool
}

// Init implements logr.LogSink. The wrapped sink has been initialized.
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
