// Package cores gives tests the Python environments of the tree: the one of `make python`,
// and with the build tag long one for each supported ansible-core, which hack/python/matrix.sh
// makes. Without its environment a test fails, because it would prove nothing; none skips.
//
// The package does not run anything in them but to ask for their version.
package cores

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// Core is an environment with one version of ansible-core.
type Core struct {
	Version string
	pyenv.Env
}

// Newest is the environment of `make python`.
func Newest(t *testing.T) Core {
	t.Helper()
	return at(t, newest, dirs()[newest])
}

const newest = "2.21"

// OnEach runs a test with every version of ansible-core that is at hand.
func OnEach(t *testing.T, test func(*testing.T, Core)) {
	t.Helper()
	for series, dir := range dirs() {
		c := at(t, series, dir)
		t.Run("ansible-core "+c.Version, func(t *testing.T) { test(t, c) })
	}
}

// at checks that the environment's ansible-core is of the series, so that no version
// stands for another.
func at(t *testing.T, series, dir string) Core {
	t.Helper()
	env := Find(t, dir)
	info, err := env.Inspect(t.Context())
	if err != nil || !strings.HasPrefix(info.AnsibleCore, series+".") {
		t.Fatalf("%s holds ansible-core %q, want %s (error %v)", dir, info.AnsibleCore, series, err)
	}
	return Core{Version: info.AnsibleCore, Env: env}
}

// Find finds the environment in a directory of the tree, as a manager with a variable for
// it and these finds it; another one, elsewhere, would not do.
func Find(tb testing.TB, dir string, environ ...string) pyenv.Env {
	tb.Helper()
	dir = filepath.Join(scratch.Repository(tb), dir)
	environ = append([]string{"VIRTUAL_ENV=" + dir, "PATH=/usr/bin:/bin"}, environ...)
	env, err := pyenv.Find(pyenv.Search{Dir: dir, Environ: environ})
	if err != nil || env.Bin != filepath.Join(dir, "bin") {
		tb.Fatalf("%s is no environment; run `make python-matrix` (found %q, error %v)", dir, env.Bin, err)
	}
	return env
}
