package cli

import (
	"log/slog" //nolint:depguard // Only to lead the standard logger to logr.

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ensign-operator/ensign/internal/operator"
)

// SetLibraryLog sets the log of controller-runtime, client-go and the standard library for parts that
// are given no logger, and returns it. The process has it once.
func SetLibraryLog(log logr.Logger) logr.Logger {
	library := operator.LibraryLog(log)
	ctrl.SetLogger(library)
	klog.SetLogger(library.WithName("client-go"))
	// Helm warns by the standard logger, at each look at a chart, and of no resource.
	slog.SetDefault(slog.New(logr.ToSlogHandler(library.WithName("libraries").V(1))))
	return library
}
