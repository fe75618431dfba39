package ensigncmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/author/changes"
	"github.com/ensign-operator/ensign/internal/author/once"
	"github.com/ensign-operator/ensign/internal/cli"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/observe/terminal"
	"github.com/ensign-operator/ensign/internal/operator"
)

// diffFlags are the flags of "diff".
type diffFlags struct {
	runOnceFlags

	all, summary bool
	color        string
}

func newDiffCommand(build cli.Build) *cobra.Command {
	f := &diffFlags{runOnceFlags: runOnceFlags{run: cli.NewFlags()}}
	cmd := &cobra.Command{
		Use:   "diff (KIND/NAME... | --all | -f FILE)",
		Short: "Show what the charts of this project would change in a cluster",
		Long: `diff shows what the manager would do if it ran the charts of this project for the
resources of a cluster: which objects it would create, change and delete, which hooks
would run, and where the upgrade would fail. Run it before you release a new version
of the operator.

It renders as the manager does, with lookups in the cluster, and compares as drift is
found: the API server answers each apply as a dry run. So fields that others manage
and defaults of the API server are no differences. Values of Secrets are not shown. A
field whose value is another one at each rendering (random text) is marked.

diff changes nothing: each request reads, or has dryRun=All. Kubernetes wants the
same rights for a dry run as for the change. diff goes by the records of releases in
the namespaces, which the manager checks and diff does not.

It is for charts. For a role or playbook, use "run-once --check".

Exit codes, as of kubectl diff: 0 no differences; 1 differences; 2 diff could not look,
or the run would fail.`,
		Example: `  # In the directory of the project, before a release:
  ensign diff --all --summary
  ensign diff mysqlcluster/sample -n shop

  # What would a changed resource do?
  ensign diff -f config/samples/myapp_v1_mysqlcluster.yaml

  # In a script:
  ensign diff --all -o json | jq '.items[] | select(.error) | .resource'`,
		RunE: func(cmd *cobra.Command, args []string) error { return cli.AsUnable(f.execute(cmd, build, args)) },
	}
	set := cmd.Flags()
	set.SortFlags = false
	set.BoolVar(&f.all, "all", false, "all resources of the charts in watches.yaml; in all namespaces, unless -n names one")
	set.StringVarP(&f.once.File, "filename", "f", "", "`file` with a resource, as it would be after it is applied; - is standard input")
	set.StringVarP(&f.once.Namespace, "namespace", "n", "", "`namespace` of the resources; default the kubeconfig's")
	set.BoolVar(&f.summary, "summary", false, "name the objects and fields that change, and no values")
	set.StringVar(&f.color, "color", "auto", "`when` to colour: auto (at a terminal), always or never")
	set.StringVarP(&f.output, "output", "o", "", "`format`: json")
	for _, name := range []string{"watches-file", "kubeconfig", "inject-owner-ref", "confine-to-namespace", "default-service-account", "drop-env"} {
		set.AddFlag(f.run.Lookup(name))
	}
	cmd.MarkFlagsMutuallyExclusive("all", "filename")
	cmd.ValidArgsFunction = (&fleetFlags{run: f.run}).completion(false)
	return cmd
}

func (f *diffFlags) checkArguments(args []string) error {
	switch {
	case len(args) == 0 && !f.all && f.once.File == "":
		return errors.New("name resources (KIND/NAME), -f FILE, or --all")
	case len(args) > 0 && (f.all || f.once.File != ""):
		return errors.New("give KIND/NAME, -f FILE, or --all, and one of them alone")
	case f.output != "" && f.output != "json":
		return fmt.Errorf("--output=%s: allowed is json", f.output)
	case !slices.Contains([]string{"auto", "always", "never"}, f.color):
		return fmt.Errorf("--color=%s: allowed are auto, always and never", f.color)
	}
	return nil
}

func (f *diffFlags) execute(cmd *cobra.Command, build cli.Build, args []string) error {
	if err := f.checkArguments(args); err != nil {
		return err
	}
	f.once.Err = cmd.ErrOrStderr()
	o, err := f.options(cmd, build)
	if err != nil {
		return err
	}
	cluster, err := dryCluster(o)
	if err != nil {
		return err
	}
	if f.once.Namespace == "" && !f.all {
		f.once.Namespace = cluster.Namespace
	}
	return withPreviewer(o, cluster, cluster.Config, func(p *operator.LocalRunner) error { return f.show(cmd, cluster, p, args) })
}

// dryCluster connects the command by requests that change nothing.
func dryCluster(o config.Options) (*cli.Cluster, error) {
	cluster, err := cli.Connect(o)
	if err != nil {
		return nil, err
	}
	cluster.Config.Wrap(operator.OnlyDryRuns)
	if cluster.Client, err = client.New(cluster.Config, client.Options{}); err != nil {
		return nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	return cluster, nil
}

// withPreviewer calls do with a previewer that has a run directory of its own.
func withPreviewer(o config.Options, c client.Client, server *rest.Config, do func(p *operator.LocalRunner) error) (err error) {
	if o.RunDir, err = os.MkdirTemp("", "ensign-diff-"); err != nil {
		return fmt.Errorf("make a run directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.RunDir)) }()
	previewer, err := operator.NewPreviewer(o, c, server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, previewer.Close()) }()
	return do(previewer)
}

func (f *diffFlags) show(cmd *cobra.Command, cluster *cli.Cluster, previewer *operator.LocalRunner, args []string) error {
	palette := terminal.For(cmd.OutOrStdout())
	if f.color != "auto" {
		palette.On = f.color == "always"
	}
	printer := changes.Printer{Out: cmd.OutOrStdout(), Palette: palette, Summary: f.summary}
	all, code := []changes.Resource{}, 0
	err := once.Previews(cmd.Context(), f.once, cluster, previewer, args, f.all, func(r changes.Resource) {
		all = append(all, r)
		if f.output == "" {
			printer.Print(r)
		}
		switch {
		case r.Fails():
			code = 2
		case r.Differs():
			code = max(code, 1)
		}
	})
	switch {
	case err != nil:
		return err
	case f.output != "":
		encoder := json.NewEncoder(cmd.OutOrStdout())
		encoder.SetIndent("", "  ")
		err = encoder.Encode(map[string]any{"items": all})
	case f.summary:
		fmt.Fprintln(cmd.OutOrStdout(), changes.Total(all))
	}
	if err == nil && code > 0 {
		err = cli.ExitWith(code, nil)
	}
	return err
}
