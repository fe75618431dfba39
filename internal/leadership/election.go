package leadership

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/leaderelection"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ensign-operator/ensign/pkg/options"
)

const (
	// controller-runtime's defaults for the times.
	defaultLeaseDuration = 15 * time.Second
	defaultRenewDeadline = 10 * time.Second
	defaultRetryPeriod   = 2 * time.Second
	// minLeaseDuration leaves time for renewals, and for the end of runs when the lease is lost.
	minLeaseDuration = 3 * time.Second
)

// podNamespaceFile is the file that holds the namespace of the manager's pod.
const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// InPod reports whether this process runs in a pod with a service account.
func InPod() bool { return fileExists(podNamespaceFile) }

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Namespace returns the namespace for the lease, and for other objects that outlive the manager: that
// of the options, or else of the pod; "" if it is not known.
func Namespace(o ctrl.Options) string {
	if o.LeaderElectionNamespace != "" {
		return o.LeaderElectionNamespace
	}
	content, _ := os.ReadFile(podNamespaceFile) // Only a pod has it.
	return strings.TrimSpace(string(content))
}

// WithLeaseTimes returns the options with the times of the lease that are not given. Between two
// renewals pass 2 s, or less for a short lease, in the proportion 2 to 15 of controller-runtime's
// defaults.
func WithLeaseTimes(o ctrl.Options) ctrl.Options {
	duration, deadline, retry := defaultLeaseDuration, defaultRenewDeadline, defaultRetryPeriod
	if o.LeaseDuration != nil {
		duration = *o.LeaseDuration
	}
	if o.RenewDeadline != nil {
		deadline = *o.RenewDeadline
	}
	if o.LeaderElection {
		retry = min(retry, duration*2/15)
	}
	if o.RetryPeriod != nil {
		retry = *o.RetryPeriod
	}
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = &duration, &deadline, &retry
	return o
}

// CheckElection checks the settings of leader election: the lease's name, namespace and times, and
// that nothing goes past the fence. Each error has the type *options.Error.
func CheckElection(o ctrl.Options) error { return checkElection(o, fileExists) }

// checkElection is CheckElection with a replaceable test whether a file is there.
func checkElection(o ctrl.Options, exists func(path string) bool) error {
	if !o.LeaderElection {
		return nil
	}
	errs := []error{checkLeaseTimes(WithLeaseTimes(o))}
	fail := func(field, value, message string) { errs = append(errs, ElectionError(field, value, message)) }
	if o.LeaderElectionReleaseOnCancel {
		fail("LeaderElectionReleaseOnCancel", "true", "leave it false: the manager releases the lease itself when all runs have ended. client-go would also release it after a failed renewal, and another manager would start while runs still execute")
	}
	if o.LeaderElectionResourceLockInterface != nil {
		fail("LeaderElectionResourceLockInterface", "", "the manager needs a lock of its own, by which it knows until when it surely holds the lease: give LeaderElectionID and LeaderElectionNamespace")
	}
	switch id := o.LeaderElectionID; {
	case id == "":
		fail("LeaderElectionID", "", "a lease needs a name that no other operator in the namespace has")
	case len(validation.IsDNS1123Subdomain(id)) > 0:
		fail("LeaderElectionID", id, "invalid name of a lease: use lower-case letters, digits, dashes and dots")
	}
	switch namespace := o.LeaderElectionNamespace; {
	case namespace == "" && !exists(podNamespaceFile):
		fail("LeaderElectionNamespace", "", "outside of a pod, the lease needs a namespace")
	case namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0:
		fail("LeaderElectionNamespace", namespace, "invalid name of a namespace: use lower-case letters, digits and dashes")
	}
	return errors.Join(errs...)
}

// checkLeaseTimes makes the checks that client-go makes when the manager has started, so that they
// come earlier and name the settings.
func checkLeaseTimes(o ctrl.Options) error {
	minDeadline := time.Duration(leaderelection.JitterFactor * float64(*o.RetryPeriod))
	switch duration, deadline := *o.LeaseDuration, *o.RenewDeadline; {
	case duration < minLeaseDuration:
		return ElectionError("LeaseDuration", duration.String(), fmt.Sprintf("too short to renew in: take %s or more", minLeaseDuration))
	case deadline >= duration:
		return ElectionError("RenewDeadline", deadline.String(), fmt.Sprintf("must be less than ctrl.Options.LeaseDuration=%s", duration))
	case deadline <= minDeadline:
		return ElectionError("RenewDeadline", deadline.String(), fmt.Sprintf("too short: take more than %s", minDeadline))
	}
	return nil
}

// ElectionError returns the error of a field of ctrl.Options.
func ElectionError(field, value, message string) error {
	return &options.Error{Field: "ctrl.Options." + field, Value: value, Err: errors.New(message)}
}
