package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/client-go/tools/clientcmd"
)

// explainKubeconfig replaces client-go's error for a missing or empty kubeconfig. The new
// error says for each file where its path comes from and why it names no API server.
// client-go's error names no file, or a variable that the manager does not read.
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
