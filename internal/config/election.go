package config

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/leaderelection"
)

const (
	// usualRetry is the pause between two renewals that controller-runtime takes.
	usualRetry = 2 * time.Second
	// shortestLease leaves time for renewals and for the end of runs.
	shortestLease = 3 * time.Second
)

// PodNamespaceFile has the namespace of the pod in which the manager runs.
const PodNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// LeaseName returns the name of the lease, "" without leader election where no flag
// gives one.
func (o Options) LeaseName() (string, error) {
	switch {
	case !o.LeaderElect || o.LeaderElectionID != "":
		return o.LeaderElectionID, nil
	case o.Env["OPERATOR_NAME"] != "":
		return o.Env["OPERATOR_NAME"], nil
	default:
		return "", errors.New("--leader-elect needs --leader-election-id: a name that no other operator in the namespace has")
	}
}

// RetryPeriod returns the pause between two renewals of the lease. A short lease has
// shorter ones, in the proportion of the usual times.
func (o Options) RetryPeriod() time.Duration {
	if !o.LeaderElect {
		return usualRetry
	}
	return min(usualRetry, o.LeaderElectLeaseDuration*2/15)
}

// checkElection finds what keeps a lease from being held, or from being made.
func (o Options) checkElection(exists func(path string) bool) error {
	if !o.LeaderElect {
		return nil
	}
	id, err := o.LeaseName()
	errs := []error{err, o.checkTimes()}
	if id != "" && len(validation.IsDNS1123Subdomain(id)) > 0 {
		source := "--leader-election-id"
		if o.LeaderElectionID == "" {
			source = "environment variable OPERATOR_NAME"
		}
		errs = append(errs, fmt.Errorf("%s=%s is no name of a lease: allowed are lower-case letters, digits, dashes and dots", source, id))
	}
	switch namespace := o.LeaderElectionNamespace; {
	case namespace == "" && !exists(PodNamespaceFile):
		errs = append(errs, errors.New("--leader-elect needs --leader-election-namespace outside of a pod: the namespace of the lease"))
	case namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0:
		errs = append(errs, fmt.Errorf("--leader-election-namespace=%s is no name of a namespace: allowed are lower-case letters, digits and dashes", namespace))
	}
	return errors.Join(errs...)
}

// checkTimes says before the start what client-go would say after it, and by the
// names of the flags.
func (o Options) checkTimes() error {
	shortest := time.Duration(leaderelection.JitterFactor * float64(o.RetryPeriod()))
	switch duration, deadline := o.LeaderElectLeaseDuration, o.LeaderElectRenewDeadline; {
	case duration < shortestLease:
		return fmt.Errorf("--leader-elect-lease-duration=%s is too short to renew in: take %s or more", duration, shortestLease)
	case deadline >= duration:
		return fmt.Errorf("--leader-elect-renew-deadline=%s must be less than --leader-elect-lease-duration=%s", deadline, duration)
	case deadline <= shortest:
		return fmt.Errorf("--leader-elect-renew-deadline=%s is too short: take more than %s", deadline, shortest)
	}
	return nil
}
