package operator

import (
	"fmt"

	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ensign-operator/ensign/internal/observe/usermetrics"
)

// userMetricsVariable tells runs where to post, for modules that can post elsewhere
// than at port 5050.
const userMetricsVariable = "ENSIGN_USER_METRICS"

// addUserMetrics adds the endpoint where roles post metrics, if there is to be one, and
// tells runs of it. An occupied port is an error: what this manager's roles post would
// show up at somebody else's.
func (p parts) addUserMetrics() error {
	o := p.options
	if o.UserMetricsBindAddress == "" || o.UserMetricsBindAddress == "0" {
		return nil
	}
	options := usermetrics.Options{Address: o.UserMetricsBindAddress, Logger: o.Logger.WithName("user-metrics")}
	if !o.UserMetricsOpen {
		options.Allow = p.proxy.HasLiveToken
	}
	endpoint, err := usermetrics.New(usermetrics.NewRegistry(ctrlmetrics.Registry), options)
	if err != nil {
		return fmt.Errorf("%w (--user-metrics-bind-address chooses another, 0 switches it off; roles that post by operator_sdk.util.osdk_metric need 127.0.0.1:5050)", err)
	}
	p.ansible.runner.Env = append(p.ansible.runner.Env, userMetricsVariable+"="+endpoint.URL())
	if err := p.manager.Add(endpoint.Server()); err != nil {
		return fmt.Errorf("add the endpoint for metrics of roles: %w", err)
	}
	return nil
}
