package operator

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ensign-operator/ensign/internal/ansible/proctree"
	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// newWarmTest returns the arguments of newWarmPool, with a stand-in beside the manager if
// standin is true, and the lines that are logged.
func newWarmTest(t *testing.T, standin bool) (o config.Options, r *runner.Runner, logged *[]string) {
	t.Helper()
	dir := scratch.Short(t)
	if standin {
		if err := os.WriteFile(filepath.Join(dir, standinName), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	logged = new([]string)
	r = &runner.Runner{}
	var err error
	if r.Root, r.Reaper, err = runner.TakeOver(filepath.Join(dir, "runs"), funcr.New(func(string, string) {}, funcr.Options{})); err != nil {
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
	return config.Options{Warm: true, WarmServers: 1, Executable: filepath.Join(dir, "manager"), Logger: log}, r, logged
}

func TestTheManagerWorksWithoutWarmRuns(t *testing.T) {
	for why, test := range map[string]struct {
		standin, warm bool
		said          int
	}{
		"where they are not asked for, they are not missed": {standin: true, warm: false, said: 0},
		"without a stand-in, that is said once":             {standin: false, warm: true, said: 1},
	} {
		t.Run(why, func(t *testing.T) {
			o, r, said := newWarmTest(t, test.standin)
			o.Warm = test.warm
			w := newWarmPool(o, pyenv.Env{}, r)
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

func TestColdRunsAreCountedOnceThereAreMetrics(t *testing.T) {
	o, r, _ := newWarmTest(t, true)
	r.Reaper = &proctree.Reaper{}
	w := newWarmPool(o, pyenv.Env{Runner: "/nowhere/ansible-runner", Bin: "/nowhere", Python: "/nowhere/python"}, r)
	if w == nil || r.Launcher != w {
		t.Fatal("there is no launcher")
	}
	w.Prepare([]string{"A=1"})
	if program, _ := w.Launch([]string{"A=1", "JOB_ID=1"}); program != "" {
		t.Errorf("got %q, with no server", program)
	}
	registry := prometheus.NewPedanticRegistry()
	if err := w.registerMetrics(registry); err != nil {
		t.Fatal(err)
	}
	program, why := w.Launch([]string{"A=1", "JOB_ID=2"})
	if program != "" || why == "" {
		t.Errorf("got %q, %q", program, why)
	}
	if n, err := testutil.GatherAndCount(registry, "ansible_operator_warm_fallbacks_total"); err != nil || n != 1 {
		t.Errorf("got %d series, %v", n, err)
	}
	if w.Ended([]string{"A=1", "JOB_ID=2"}) {
		t.Error("a cold run counts as warm")
	}
	if err := w.close(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(r.Root.Path(), warmDirName)); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

func TestWarmServersLimitsTheSetsOfServers(t *testing.T) {
	o, r, _ := newWarmTest(t, true)
	r.Reaper = &proctree.Reaper{}
	o.WarmServers = 1
	w := newWarmPool(o, pyenv.Env{Runner: "/nowhere/ansible-runner", Bin: "/nowhere", Python: "/nowhere/python"}, r)
	w.Prepare([]string{"A=1"})
	w.Prepare([]string{"A=2"})
	sets := func() int {
		found, err := filepath.Glob(filepath.Join(r.Root.Path(), warmDirName, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	for deadline := time.Now().Add(time.Minute); sets() > 1; <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("there are %d sets", sets())
		}
	}
	if err := w.close(); err != nil {
		t.Error(err)
	}
}
