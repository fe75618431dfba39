package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/config"
)

func TestTheErrorWithoutAKubeconfigNamesEachSource(t *testing.T) {
	dir := t.TempDir()
	missing, empty := filepath.Join(dir, "none"), filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		variable, flag string
		want           []string
	}{
		"the variable names no file":         {missing, "", []string{"KUBECONFIG=" + missing + ": there is no such file"}},
		"the flag names none":                {empty, missing, []string{"--kubeconfig=" + missing + ": there is no such file"}},
		"the flag names one without servers": {missing, empty, []string{"--kubeconfig=" + empty + ": it names no API server"}},
		"the variable names several":         {empty + ":" + missing, "", []string{"KUBECONFIG=" + empty + ": it names no API server", "KUBECONFIG=" + missing + ": there is no such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.variable)
			t.Setenv("HOME", dir)
			t.Setenv("KUBERNETES_SERVICE_HOST", "") // as outside of a pod
			_, err := RESTConfig(config.Options{Kubeconfig: test.flag})
			for _, want := range append(test.want, "--kubeconfig") {
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "KUBERNETES_MASTER") {
					t.Errorf("want an error with %q, got %v", want, err)
				}
			}
		})
	}
}
