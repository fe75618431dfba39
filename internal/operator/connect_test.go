package operator

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestWithoutAKubeconfigTheErrorNamesTheWays(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // as outside of a pod
	_, err := connect(Options{})
	if err == nil || !strings.Contains(err.Error(), "--kubeconfig") || strings.Contains(err.Error(), "KUBERNETES_MASTER") {
		t.Errorf("got %v", err)
	}
}
