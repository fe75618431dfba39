package operator

import (
	"fmt"

	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ensign-operator/ensign/internal/observe/usermetrics"
)

// userMetricsVariable is the environment variable with the URL of the endpoint, for modules
// that can post to another address than port 5050.
const userMetricsVariable = "ENSIGN_USER_METRICS"

// addUserMetrics adds the endpoint to which roles post metrics, unless it is switched off,
// and gives runs its URL. A port that is in use is an error: the metrics of this manager's
// roles would go to another process.
func (c components) addUserMetrics() error {
	o := c.options
	if o.UserMetricsBindAddress == "" || o.UserMetricsBindAddress == "0" {
		return nil
	}
	options := usermetrics.Options{Address: o.UserMetricsBindAddress, Logger: o.Logger.WithName("user-metrics")}
	if !o.UserMetricsOpen {
		options.Allow = c.proxy.HasLiveToken
	}
	endpoint, err := usermetrics.New(usermetrics.NewRegistry(ctrlmetrics.Registry), options)
	if err != nil {
		return fmt.Errorf("%w (--user-metrics-bind-address chooses another, 0 switches it off; roles that post by operator_sdk.util.osdk_metric need 127.0.0.1:5050)", err)
	}
	c.ansible.runner.Env = append(c.ansible.runner.Env, userMetricsVariable+"="+endpoint.URL())
	if err := c.manager.Add(endpoint.Server()); err != nil {
		return fmt.Errorf("add the endpoint for metrics of roles: %w", err)
	}
	return nil
}
