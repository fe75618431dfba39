package backend

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// newWarmTest returns the arguments of newWarmServer, and the lines that are logged.
func newWarmTest(t *testing.T) (o config.Options, r *runner.Runner, logged *[]string) {
	t.Helper()
	dir := scratch.Short(t)
	logged = new([]string)
	r = &runner.Runner{}
	var err error
	if r.Root, r.Reaper, err = process.TakeOver(filepath.Join(dir, "runs"), funcr.New(func(string, string) {}, funcr.Options{})); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Root.Close(); err != nil {
			t.Error(err)
		}
	})
	var mu sync.Mutex // Servers log in other goroutines.
	log := funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		*logged = append(*logged, line)
	}, funcr.Options{})
	return config.Options{Logger: log}, r, logged
}

func TestTheManagerWorksWithoutWarmRuns(t *testing.T) {
	for why, test := range map[string]struct {
		warm bool
		said int
	}{
		"where they are not asked for, they are not missed":   {false, 0},
		"without a place for their server, that is said once": {true, 1},
	} {
		t.Run(why, func(t *testing.T) {
			o, r, said := newWarmTest(t)
			o.Cold = !test.warm
			if err := os.RemoveAll(r.Root.Path()); err != nil {
				t.Fatal(err)
			}
			w := newWarmServer(o, pyenv.Env{}, r, nil)
			if w != nil || r.Launcher != nil {
				t.Error("there is a launcher")
			}
			if err := w.registerMetrics(prometheus.NewPedanticRegistry()); err != nil {
				t.Error(err)
			}
			if err := w.close(); err != nil {
				t.Error(err)
			}
			if got := strings.Join(*said, "\n"); len(*said) != test.said || strings.Count(got, "all runs are cold") != test.said {
				t.Errorf("got %q", *said)
			}
		})
	}
}

func TestColdRunsAreCounted(t *testing.T) {
	o, r, _ := newWarmTest(t)
	w := newWarmServer(o, pyenv.Env{Python: "/nowhere/python"}, r, nil)
	if w == nil || r.Launcher != w.server {
		t.Fatal("there is no launcher")
	}
	w.server.Prepare([]string{"A=1"})
	_, why := w.server.Start(exec.Command("/nowhere/python"))
	if got := w.coldReason(); why == "" || got != why {
		t.Errorf("got %q, want %q", got, why)
	}
	registry := prometheus.NewPedanticRegistry()
	if err := w.registerMetrics(registry); err != nil {
		t.Fatal(err)
	}
	if n, err := testutil.GatherAndCount(registry, "ansible_operator_warm_fallbacks_total"); err != nil || n != 1 {
		t.Errorf("got %d series, %v", n, err)
	}
	if err := w.close(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(r.Root.Path(), warmDirName)); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}
