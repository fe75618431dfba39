package config

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/leaderelection"
)

const (
	// defaultRetryPeriod is controller-runtime's pause between two renewals of the lease.
	defaultRetryPeriod = 2 * time.Second
	// minLeaseDuration leaves time for renewals, and for the end of runs when the lease is lost.
	minLeaseDuration = 3 * time.Second
)

// PodNamespaceFile is the file that holds the namespace of the manager's pod.
const PodNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// LeaseName returns the name of the lease. Without leader election it may be empty.
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

// RetryPeriod returns the pause between two renewals of the lease: 2 s, or less for a
// short lease, in the proportion 2 to 15 of controller-runtime's defaults.
func (o Options) RetryPeriod() time.Duration {
	if !o.LeaderElect {
		return defaultRetryPeriod
	}
	return min(defaultRetryPeriod, o.LeaderElectLeaseDuration*2/15)
}

// checkElection checks the settings of leader election: the lease's name, namespace and
// times.
func (o Options) checkElection(exists func(path string) bool) error {
	if !o.LeaderElect {
		return nil
	}
	id, err := o.LeaseName()
	errs := []error{err, o.checkLeaseTimes()}
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

// checkLeaseTimes makes the checks that client-go makes when the manager has started, so
// that they come earlier and name the flags.
func (o Options) checkLeaseTimes() error {
	minDeadline := time.Duration(leaderelection.JitterFactor * float64(o.RetryPeriod()))
	switch duration, deadline := o.LeaderElectLeaseDuration, o.LeaderElectRenewDeadline; {
	case duration < minLeaseDuration:
		return fmt.Errorf("--leader-elect-lease-duration=%s is too short to renew in: take %s or more", duration, minLeaseDuration)
	case deadline >= duration:
		return fmt.Errorf("--leader-elect-renew-deadline=%s must be less than --leader-elect-lease-duration=%s", deadline, duration)
	case deadline <= minDeadline:
		return fmt.Errorf("--leader-elect-renew-deadline=%s is too short: take more than %s", deadline, minDeadline)
	}
	return nil
}
