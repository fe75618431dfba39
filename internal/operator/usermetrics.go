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
// and returns the variable with its URL for runs. A port that is in use is an error: the metrics of this manager's
// roles would go to another process.
func (c *components) addUserMetrics() (env []string, err error) {
	o := c.options
	if o.UserMetricsBindAddress == "" || o.UserMetricsBindAddress == "0" {
		return nil, nil
	}
	endpointOptions := usermetrics.Options{Address: o.UserMetricsBindAddress, Logger: o.Logger.WithName("user-metrics")}
	if o.UserMetricsNeedToken {
		endpointOptions.Allow = c.proxy.HasLiveToken
	}
	endpoint, err := usermetrics.New(usermetrics.NewRegistry(c.registerer), endpointOptions)
	if err != nil {
		return nil, &options.Error{Field: "UserMetricsBindAddress", Err: fmt.Errorf("%w; choose another, 0 switches it off (roles that post by operator_sdk.util.osdk_metric need 127.0.0.1:5050)", err)}
	}
	c.userMetrics = endpoint
	return []string{userMetricsVariable + "=" + endpoint.URL()}, c.addServer(endpoint.Server())
}
