package operator

import (
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// libraryLog is the log of controller-runtime and client-go. While stopping is true, their
// errors become debug lines: an orderly stop has ended all runs and written their statuses,
// and the libraries report only that they were stopped. An error that prevents an orderly
// end is returned by Run.
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

// install makes it the global log of both libraries, for their parts that take no logger.
func (l libraryLog) install() {
	ctrl.SetLogger(l.Logger)
	klog.SetLogger(l.WithName("client-go"))
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
