package operator

import (
	"fmt"

	"github.com/ensign-operator/ensign/internal/observe/usermetrics"
	"github.com/ensign-operator/ensign/pkg/options"
)

// userMetricsVariable is the environment variable with the URL of the endpoint, for modules
// that can post to another address than port 5050.
const userMetricsVariable = "ENSIGN_USER_METRICS"

// addUserMetrics adds the endpoint to which roles post metrics, unless it is switched off,
// and gives runs its URL. A port that is in use is an error: the metrics of this manager's
// roles would go to another process.
func (a *ansibleBackend) addUserMetrics(c *components) error {
	o := a.options
	if o.UserMetricsBindAddress == "" || o.UserMetricsBindAddress == "0" {
		return nil
	}
	endpointOptions := usermetrics.Options{Address: o.UserMetricsBindAddress, Logger: o.Logger.WithName("user-metrics")}
	if o.UserMetricsNeedToken {
		endpointOptions.Allow = c.proxy.HasLiveToken
	}
	endpoint, err := usermetrics.New(usermetrics.NewRegistry(c.registerer), endpointOptions)
	if err != nil {
		return &options.Error{Field: "UserMetricsBindAddress", Err: fmt.Errorf("%w; choose another, 0 switches it off (roles that post by operator_sdk.util.osdk_metric need 127.0.0.1:5050)", err)}
	}
	a.userMetrics, c.userMetrics = true, endpoint
	a.runner.Env = append(a.runner.Env, userMetricsVariable+"="+endpoint.URL())
	return c.addServer(endpoint.Server())
}
