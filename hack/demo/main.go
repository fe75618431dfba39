// Command demo is the guided tour of `make demo`: it boots a cluster, runs the
// manager, and leads one MySQLCluster through its life. Each step says what is
// done and why, shows the kubectl command, and is asserted: the first thing that
// does not hold ends the tour with exit code 1. Whatever it started or created is
// taken down at the end, also after Ctrl-C.
//
//	KEEP=1                 leaves everything up until Ctrl-C
//	DEMO_CLUSTER=current   uses the cluster of KUBECONFIG instead of its own
//
// It runs in the root of the source tree, with bin/manager, bin/controlplane and
// .venv in place: `make demo` makes them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ensign-operator/ensign/hack/demo/script"
)

// cleanUpLimit is how long taking everything down may take.
const cleanUpLimit = 3 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// After the first signal things are taken down in order; a second one kills.
	context.AfterFunc(ctx, stop)
	settings, err := readSettings(os.Getenv)
	if err == nil {
		err = run(ctx, settings, os.Stdout)
	}
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// settings are what the environment asks for.
type settings struct {
	keep bool
	// kubeconfig is that of an existing cluster. Empty: boot one.
	kubeconfig string
}

func readSettings(getenv func(string) string) (settings, error) {
	s := settings{}
	switch keep := getenv("KEEP"); keep {
	case "", "0":
	case "1":
		s.keep = true
	default:
		return s, fmt.Errorf("KEEP is %q; 1 keeps everything up, 0 or nothing does not", keep)
	}
	switch cluster := getenv("DEMO_CLUSTER"); cluster {
	case "":
	case "current":
		if s.kubeconfig = getenv("KUBECONFIG"); s.kubeconfig == "" {
			return s, errors.New("DEMO_CLUSTER=current needs KUBECONFIG, the path of the cluster's kubeconfig")
		}
	default:
		return s, fmt.Errorf("DEMO_CLUSTER is %q; \"current\" uses KUBECONFIG's cluster, nothing boots one", cluster)
	}
	return s, nil
}

// run gives the tour and always takes down what it has put up.
func run(ctx context.Context, s settings, out io.Writer) (err error) {
	t := &tour{stage: &stage{script: script.New(out), settings: s}}
	defer func() {
		cleanUp, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpLimit)
		defer cancel()
		err = errors.Join(err, t.strike(cleanUp))
		if err == nil {
			t.script.Say("Everything is down again.")
		}
	}()
	err = t.play(ctx)
	if ctx.Err() != nil {
		t.script.Say("\nInterrupted; taking everything down.")
		if s.keep && err == nil {
			return nil // Ctrl-C is how a kept tour ends.
		}
		return errors.New("interrupted")
	}
	return err
}
