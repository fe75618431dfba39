package runs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ensign-operator/ensign/internal/pyenv"
)

// environment is the one that `make python` made. Without it the tests fail:
// they would prove nothing.
func environment(t *testing.T) pyenv.Env {
	t.Helper()
	env, err := pyenv.Find(pyenv.Search{Dir: repository(t), Environ: []string{"PATH=/usr/bin:/bin", "HOME=" + os.Getenv("HOME")}})
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}
