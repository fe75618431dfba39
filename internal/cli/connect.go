package cli

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/operator"
)

// Cluster is the API server for a command.
type Cluster struct {
	// Client has no cache.
	client.Client

	Config *rest.Config
	// Context is the kubeconfig's, "" in a pod.
	Context string
	// Namespace is that of the kubeconfig's context, or "default".
	Namespace string
}

// Connect connects a command to the API server. Messages of libraries go to o.Logger.
func Connect(o config.Options) (*Cluster, error) {
	SetLibraryLog(o.Logger)
	restConfig, err := RESTConfig(o)
	if err != nil {
		return nil, err
	}
	if err := operator.ReachServer(o.Logger, restConfig); err != nil {
		return nil, err
	}
	c, err := client.New(restConfig, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	namespace, _, err := clientConfig(o).Namespace()
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	raw, err := clientConfig(o).RawConfig()
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	return &Cluster{Client: c, Config: restConfig, Context: raw.CurrentContext, Namespace: namespace}, nil
}

// Here sets the environment, the working directory and the path of this program.
func Here(o *config.Options) (err error) {
	o.Env = config.NewEnvironment(os.Environ())
	if o.Dir, err = os.Getwd(); err != nil {
		return fmt.Errorf("find the working directory: %w", err)
	}
	if o.Executable, err = os.Executable(); err != nil {
		return fmt.Errorf("find the path of this program: %w", err)
	}
	return nil
}

// RESTConfig reads the client configuration of a command.
func RESTConfig(o config.Options) (*rest.Config, error) {
	rules := loadingRules(o)
	restConfig, err := clientConfig(o).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server (in a pod, or by --kubeconfig, KUBECONFIG or ~/.kube/config): %w", explainKubeconfig(rules, err))
	}
	restConfig.QPS = -1 // No client-side limit: the API server has priority and fairness, and a limit here would only delay results.
	restConfig.UserAgent = "ensign/" + o.Version
	return restConfig, nil
}

func loadingRules(o config.Options) *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	return rules
}

func clientConfig(o config.Options) clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(loadingRules(o), &clientcmd.ConfigOverrides{})
}
