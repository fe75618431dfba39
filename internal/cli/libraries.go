package cli

import (
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ensign-operator/ensign/internal/operator"
)

// SetLibraryLog sets the log of controller-runtime and client-go for their parts that are given no
// logger, and returns it. The process has it once.
func SetLibraryLog(log logr.Logger) logr.Logger {
	library := operator.LibraryLog(log)
	ctrl.SetLogger(library)
	klog.SetLogger(library.WithName("client-go"))
	return library
}
