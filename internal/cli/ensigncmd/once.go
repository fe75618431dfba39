package ensigncmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/author/once"
	"github.com/ensign-operator/ensign/internal/cli"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/observe/terminal"
	"github.com/ensign-operator/ensign/internal/operator"
	"github.com/ensign-operator/ensign/internal/sanitize"
	"github.com/ensign-operator/ensign/internal/watches"
)

// runOnceFlags are the flags of "run-once".
type runOnceFlags struct {
	run    *cli.Flags
	once   once.Options
	check  bool
	vars   bool
	output string
}

func newRunOnceCommand(build cli.Build) *cobra.Command {
	f := &runOnceFlags{run: cli.NewFlags()}
	cmd := &cobra.Command{
		Use:   "run-once (-f FILE | KIND/NAME)",
		Short: "Run the content once for one resource, and show each task",
		Long: `run-once runs the role or playbook of a watch for one custom resource, at the
terminal and without a manager: with the same variables, the same access to the
API server of the kubeconfig, and the same owner references. It does not
run charts: "diff" shows what a run would change, and --vars a chart's values.

The resource comes from a file (-f; the cluster need not have it) or from the
cluster (KIND/NAME). run-once refuses fields in a file that the kind does not have. A
role that writes the status of its resource needs a resource in the cluster. run-once
itself writes no finalizer, and no status without --status.

Exit codes: 0 the run succeeded; 1 the run failed; 2 the run could not begin.`,
		Example: `  # A resource of a file; then again each time that the role or the file is saved:
  ensign run-once -f config/samples/myapp_v1_mysqlcluster.yaml
  ensign run-once -f config/samples/myapp_v1_mysqlcluster.yaml --watch

  # What would a run change? And what does Ansible get?
  ensign run-once mysqlcluster/sample -n shop --check
  ensign run-once mysqlcluster/sample -n shop --vars`,
		Args: cli.OrUnable(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.AsUnable(f.execute(cmd, build, args))
		},
	}
	f.register(cmd)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return (&fleetFlags{run: f.run, namespace: f.once.Namespace}).completion(false)(cmd, args, typed)
	}
	return cmd
}

func (f *runOnceFlags) register(cmd *cobra.Command) {
	set := cmd.Flags()
	set.SortFlags = false
	set.StringVarP(&f.once.File, "filename", "f", "", "`file` with the resource; - is standard input")
	set.StringVarP(&f.once.Namespace, "namespace", "n", "", "`namespace` of a resource that names none; default the kubeconfig's")
	set.BoolVar(&f.check, "check", false, "change nothing, and show what a run would change, as far as the modules can tell")
	set.BoolVar(&f.once.Diffs, "diff", false, "show what tasks change")
	set.BoolVar(&f.once.Finalize, "finalize", false, "run the content of the watch's finalizer instead")
	set.BoolVar(&f.vars, "vars", false, "print the variables that Ansible would get, or the values of a chart, without secrets, and run nothing")
	set.StringVarP(&f.output, "output", "o", "yaml", "`format` of --vars: yaml or json")
	set.BoolVar(&f.once.Watch, "watch", false, "run again when a file of the content, or the resource's, is saved; Ctrl-C ends")
	set.BoolVar(&f.once.Status, "status", false, "write the result to the resource's status, for a resource of the cluster")
	for _, name := range []string{"watches-file", "kubeconfig", "ansible-roles-path", "ansible-collections-path", "ansible-args", "ansible-verbosity", "inject-owner-ref", "confine-to-namespace", "drop-env"} {
		set.AddFlag(f.run.Lookup(name))
	}
	cmd.MarkFlagsMutuallyExclusive("vars", "watch")
	cmd.MarkFlagsMutuallyExclusive("vars", "status")
	cmd.MarkFlagsMutuallyExclusive("check", "status")
}

func (f *runOnceFlags) execute(cmd *cobra.Command, build cli.Build, args []string) error {
	if err := f.checkArguments(args); err != nil {
		return err
	}
	o, err := f.options(cmd, build)
	if err != nil {
		return err
	}
	f.once.Out, f.once.Err = cmd.OutOrStdout(), cmd.ErrOrStderr()
	f.once.Palette = terminal.For(cmd.OutOrStdout())
	list, err := operator.Watches(o)
	if err != nil {
		return err
	}
	if f.vars {
		return f.printVariables(cmd.Context(), o, list)
	}
	cluster, err := cli.Connect(o)
	if err != nil {
		return err
	}
	f.once.Namespace = cmp.Or(f.once.Namespace, cluster.Namespace)
	if err := once.Check(cmd.Context(), f.once, cluster, list); err != nil {
		return err
	}
	return f.perform(cmd.Context(), o, cluster)
}

func (f *runOnceFlags) checkArguments(args []string) error {
	switch {
	case len(args) == 1:
		f.once.Name = args[0]
	case f.once.File == "":
		return errors.New("name a resource: -f FILE, or KIND/NAME")
	}
	switch {
	case f.once.File != "" && f.once.Name != "":
		return fmt.Errorf("-f %s and %s: name one resource", f.once.File, f.once.Name)
	case f.once.File == "-" && f.once.Watch:
		return errors.New("-f - and --watch: standard input is not saved again, name a file")
	case f.output != "yaml" && f.output != "json":
		return fmt.Errorf("--output=%s: allowed are yaml and json", f.output)
	}
	return nil
}

// options returns the settings of the manager that would run the content.
func (f *runOnceFlags) options(cmd *cobra.Command, build cli.Build) (config.Options, error) {
	o, err := f.run.Complete(io.Discard)
	if err != nil {
		return o, err
	}
	o.Version, o.Commit = build.Version, build.Commit
	o.Project = true
	if err := cli.Here(&o); err != nil {
		return o, err
	}
	if f.once.File == "-" {
		if f.once.Input, err = io.ReadAll(cmd.InOrStdin()); err != nil {
			return o, fmt.Errorf("read standard input: %w", err)
		}
	}
	o.Logger = newCommandLogger(cmd.ErrOrStderr())
	// A server for warm runs takes longer to start than one cold run.
	o.Cold = !f.once.Watch
	if f.check {
		o.AnsibleArgs = strings.TrimSpace(o.AnsibleArgs + " --check")
	}
	if f.once.Diffs = f.once.Diffs || f.check; f.once.Diffs {
		o.AnsibleArgs = strings.TrimSpace(o.AnsibleArgs + " --diff")
	}
	return o, o.Check()
}

func (f *runOnceFlags) printVariables(ctx context.Context, o config.Options, list []watches.Watch) error {
	cluster, err := cli.Connect(o)
	switch {
	case err == nil:
		f.once.Namespace = cmp.Or(f.once.Namespace, cluster.Namespace)
		return once.Variables(ctx, f.once, cluster, list, chartValues(o, cluster, cluster.Config), f.output == "json")
	case f.once.File == "":
		return err
	}
	fmt.Fprintln(f.once.Err, "note: the schema of the kind is not applied (no defaults, no validation), because there is no cluster:", sanitize.Text(err.Error()))
	f.once.Namespace = cmp.Or(f.once.Namespace, "default")
	return once.Variables(ctx, f.once, nil, list, chartValues(o, nil, nil), f.output == "json")
}

func chartValues(o config.Options, c client.Client, server *rest.Config) once.ChartValues {
	return func(ctx context.Context, cr *unstructured.Unstructured) (values map[string]any, hide func(string) string, err error) {
		err = withPreviewer(o, c, server, func(p *operator.LocalRunner) error {
			values, hide, err = p.Values(ctx, cr)
			return err
		})
		return values, hide, err
	}
}

// perform runs the content in a run directory of its own, so that a manager's is left alone.
func (f *runOnceFlags) perform(ctx context.Context, o config.Options, cluster *cli.Cluster) (err error) {
	if o.RunDir, err = os.MkdirTemp("", "ensign-once-"); err != nil {
		return fmt.Errorf("make a run directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.RunDir)) }()
	fmt.Fprintln(f.once.Err, "checking watches.yaml and the Python environment ...")
	bench, err := operator.NewLocalRunner(ctx, o, cluster, cluster.Config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bench.Close()) }()
	err = once.Run(ctx, f.once, cluster, bench)
	if errors.Is(err, once.ErrFailed) {
		return cli.ExitWith(1, nil)
	}
	return err
}

// newCommandLogger returns a logger for a command that a person calls: warnings and errors alone.
func newCommandLogger(out io.Writer) logr.Logger {
	return funcr.New(func(_, args string) {
		if strings.Contains(args, `"msg"="WARNING`) || strings.Contains(args, `"error"=`) {
			fmt.Fprintln(out, sanitize.Text(args))
		}
	}, funcr.Options{})
}
