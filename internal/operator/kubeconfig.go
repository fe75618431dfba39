package operator

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/client-go/tools/clientcmd"
)

// explainKubeconfig says of each file that was looked for why it names no API server, and
// what named the file. The library says either nothing of that, or speaks of a variable
// that is not read here.
func explainKubeconfig(rules *clientcmd.ClientConfigLoadingRules, err error) error {
	if !clientcmd.IsEmptyConfig(err) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	source := "the usual place"
	switch {
	case rules.ExplicitPath != "":
		source = "--kubeconfig"
	case os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "":
		source = "environment variable " + clientcmd.RecommendedConfigPathEnvVar
	}
	var errs []error
	for _, file := range rules.GetLoadingPrecedence() {
		reason := "there is no such file"
		if _, err := os.Stat(file); err == nil {
			reason = "it names no API server"
		}
		errs = append(errs, fmt.Errorf("%s=%s: %s", source, file, reason))
	}
	return errors.Join(errs...)
}
