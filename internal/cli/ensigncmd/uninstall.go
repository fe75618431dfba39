package ensigncmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ensign-operator/ensign/internal/author/removal"
	"github.com/ensign-operator/ensign/internal/cli"
)

// uninstallFlags are the flags of "uninstall".
type uninstallFlags struct {
	fleetFlags

	file    string
	force   bool
	timeout time.Duration
}

func newUninstallCommand() *cobra.Command {
	f := &uninstallFlags{fleetFlags: fleetFlags{run: cli.NewFlags()}}
	cmd := &cobra.Command{
		Use:   "uninstall -f FILE",
		Short: "Remove an operator's objects, unless custom resources exist",
		Long: `uninstall deletes the objects of a file from the cluster, and waits until they are
gone. It removes nothing while there are custom resources of the file's CRDs, with
or without a finalizer: Kubernetes deletes them with their CRDs, and without the
manager nobody removes finalizers. It also looks for resources of other kinds of
watches.yaml that have the finalizer of their watch.

The cluster is that of KUBECONFIG or --kubeconfig; one of them has to be given.
~/.kube/config is not used by default.`,
		Example: `  kubectl kustomize config/default | ensign uninstall -f -`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.execute(cmd) },
	}
	set := cmd.Flags()
	set.SortFlags = false
	set.StringVarP(&f.file, "filename", "f", "", "`file` with the operator's objects, as YAML; - is standard input")
	set.BoolVar(&f.force, "force", false, "delete custom resources too, without the content of their finalizers: what it would delete stays")
	set.DurationVar(&f.timeout, "timeout", 2*time.Minute, "the longest `time` to wait until everything is gone")
	for _, name := range []string{"watches-file", "kubeconfig"} {
		set.AddFlag(f.run.Lookup(name))
	}
	_ = cmd.MarkFlagRequired("filename")
	return cmd
}

func (f *uninstallFlags) execute(cmd *cobra.Command) error {
	objects, err := readObjects(cmd, f.file)
	if err != nil {
		return err
	}
	o, list, err := f.settings()
	if err != nil {
		return err
	}
	if o.Kubeconfig == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		return fmt.Errorf("no cluster is chosen: set %s, or give --kubeconfig. %s is not used by default, because this command deletes",
			clientcmd.RecommendedConfigPathEnvVar, clientcmd.RecommendedHomeFile)
	}
	c, err := connectWith(o, list)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "cluster: %s (context %s)\n", c.Config.Host, c.Context)
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	r := removal.Removal{Client: c, Objects: objects, Watches: list, Say: func(text string) { fmt.Fprintln(cmd.OutOrStdout(), text) }}
	if f.force {
		return r.Force(ctx)
	}
	err = r.Unforced(ctx)
	if errors.Is(err, removal.ErrInUse) {
		return fmt.Errorf("%w. --force (make: FORCE=1) deletes them and their CRDs without running their finalizers' content, so the objects that this content would delete remain", err)
	}
	return err
}
