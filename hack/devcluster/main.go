// Command devcluster runs an embedded Kubernetes control plane in the foreground
// until it is interrupted, and leaves nothing behind. `make devcluster` calls it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ensign-operator/ensign/test/controlplane"
)

// defaultKubeconfig is where the Makefile's targets look for a cluster.
const defaultKubeconfig = ".dev/kubeconfig"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "devcluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	options, err := parse(args, out)
	if err != nil {
		return err
	}
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	say("booting etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok; about 5 s")
	began := time.Now()
	cluster, err := start(ctx, options, say)
	if errors.Is(err, context.Canceled) {
		say("interrupted during the boot; everything is down")
		return nil
	}
	if err != nil {
		return err
	}
	say("logs:       %s", filepath.Join(cluster.DataDir, "logs"))
	say("kubeconfig: %s", cluster.Kubeconfig)
	say("try:        %s --kubeconfig %s get nodes", cluster.Kubectl, cluster.Kubeconfig)
	say("ready after %.1f s; Ctrl-C ends it", time.Since(began).Seconds())

	select {
	case <-ctx.Done():
		say("ending the control plane")
		err = nil
	case err = <-cluster.Failed():
	}
	if err := errors.Join(err, cluster.Stop()); err != nil {
		return err
	}
	say("everything is down")
	return nil
}

func parse(args []string, out io.Writer) (controlplane.Options, error) {
	options := controlplane.Options{Log: out, AdmitServiceAccounts: true}
	flags := flag.NewFlagSet("devcluster", flag.ContinueOnError)
	flags.StringVar(&options.Bin, "bin", "", "directory of the programs (default: bin/controlplane, here or above)")
	flags.StringVar(&options.DataDir, "data", "", "directory that keeps the cluster's objects for the next time (default: a temporary one)")
	flags.StringVar(&options.Kubeconfig, "kubeconfig", "", "path of the kubeconfig to write (default "+defaultKubeconfig+", or "+defaultKubeconfig+"-2 and so on beside other clusters)")
	if err := flags.Parse(args); err != nil {
		return options, err
	}
	if flags.NArg() > 0 {
		return options, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return options, nil
}

// start takes the first default kubeconfig that no running cluster owns, unless
// the user named one.
func start(ctx context.Context, options controlplane.Options, say func(string, ...any)) (*controlplane.Cluster, error) {
	if options.Kubeconfig != "" {
		return controlplane.Start(ctx, options)
	}
	options.Kubeconfig = defaultKubeconfig
	for number := 2; ; number++ {
		cluster, err := controlplane.Start(ctx, options)
		if !errors.Is(err, controlplane.ErrKubeconfigInUse) {
			return cluster, err
		}
		next := fmt.Sprintf("%s-%d", defaultKubeconfig, number)
		say("%s belongs to a running cluster; this one takes %s", options.Kubeconfig, next)
		options.Kubeconfig = next
	}
}
