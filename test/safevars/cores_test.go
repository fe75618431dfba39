package safevars

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// core is an environment with one version of ansible-core.
type core struct {
	version string
	env     pyenv.Env
}

// coreAt is the environment in a directory of the tree. Its ansible-core must be
// of the named series, so that no version stands for another.
func coreAt(t *testing.T, dir, series string) core {
	t.Helper()
	env := environmentAt(t, dir)
	info, err := env.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(info.AnsibleCore, series+".") {
		t.Fatalf("%s holds ansible-core %s, want %s", dir, info.AnsibleCore, series)
	}
	return core{version: info.AnsibleCore, env: env}
}

// environmentAt is what Find takes for the environment in a directory of the
// tree; anything that it finds elsewhere would be another.
func environmentAt(t *testing.T, dir string) pyenv.Env {
	t.Helper()
	dir = filepath.Join(scratch.Repository(t), dir)
	env, err := pyenv.Find(pyenv.Search{Dir: dir, Environ: []string{"VIRTUAL_ENV=" + dir, "PATH=/usr/bin:/bin"}})
	if err != nil || env.Bin != filepath.Join(dir, "bin") {
		t.Fatalf("%s is no environment; run `make python-matrix` (found %q, error %v)", dir, env.Bin, err)
	}
	return env
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// onEachCore runs a test on every version of ansible-core that is at hand.
func onEachCore(t *testing.T, test func(*testing.T, core)) {
	t.Helper()
	for _, c := range cores(t) {
		t.Run("ansible-core "+c.version, func(t *testing.T) { test(t, c) })
	}
}
