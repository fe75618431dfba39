package safevars

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/cores"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// startManager has bin/manager start with an environment. Without an API server
// it always ends; what matters is why.
func startManager(t *testing.T, env pyenv.Env, environ ...string) (code int, said string) {
	t.Helper()
	dir := filepath.Join(scratch.Repository(t), "test", "safevars", "testdata", "operator")
	m, err := harness.Start(harness.Options{
		Binary: filepath.Join(scratch.Repository(t), "bin", "manager"), Project: dir, Kubeconfig: filepath.Join(dir, "kubeconfig"), Home: scratch.Short(t),
		Env: append([]string{"VIRTUAL_ENV=" + filepath.Dir(env.Bin), "PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}, environ...),
	})
	if err != nil {
		t.Fatalf("%v (run `make build`)", err)
	}
	select {
	case <-m.Ended():
	case <-time.After(limit):
		t.Errorf("the manager does not end by itself (%v)", m.Kill())
	}
	said, err = m.Log()
	if err != nil {
		t.Fatal(err)
	}
	return m.ExitCode(), said
}

func TestTheManagerProvesItsEnvironment(t *testing.T) {
	faulty := "PYTHONPATH=" + filepath.Join(scratch.Repository(t), "test", "safevars", "testdata", "faulty")
	unguarded := "PYTHONPATH=" + filepath.Join(scratch.Repository(t), "test", "safevars", "testdata", "unguarded")
	const refused, accepted = "Ansible evaluated text that is marked as untrusted", "reach the API server"
	const notGuarded = "its Kubernetes client does not work with the operator's check of names in requests: kubernetes.dynamic.resource is of a version that is not known"
	cores.OnEach(t, func(t *testing.T, c cores.Core) {
		for why, test := range map[string]struct {
			environ  []string
			want     string
			mustLack string
		}{
			"an Ansible that templates marked text is refused":                        {[]string{faulty}, refused, accepted},
			"a client of Kubernetes that the guard of names does not know is refused": {[]string{unguarded}, notGuarded, accepted},
			"the same without the fault is not":                                       {nil, accepted, refused},
		} {
			t.Run(why, func(t *testing.T) {
				code, said := startManager(t, c.Env, test.environ...)
				if code != 1 || !strings.Contains(said, test.want) || strings.Contains(said, test.mustLack) {
					t.Errorf("got exit code %d, want 1 and %q without %q:\n%s", code, test.want, test.mustLack, said)
				}
			})
		}
	})
}

// What the canary stands for: with that fault, a text of an object is executed.
func TestTheFaultIsOne(t *testing.T) {
	object := func(markers string) map[string]any {
		return map[string]any{"spec": named("p", texts(templates[:1], markers, "faulty"))}
	}
	cores.OnEach(t, func(t *testing.T, c cores.Core) {
		r := setup{object: object, environ: []string{"PYTHONPATH=" + filepath.Join(scratch.Repository(t), "test", "safevars", "testdata", "faulty")}}.start(t, c, "-p", "control.yml")
		if executed := r.executed(t); len(executed) != 1 {
			t.Errorf("got %q, want the text executed:\n%s", executed, r.tail())
		}
	})
}
