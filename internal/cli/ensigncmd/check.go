package ensigncmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ensign-operator/ensign/internal/author/check"
	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/cli"
	"github.com/ensign-operator/ensign/internal/config"
)

// checkFlags are the flags of "check".
type checkFlags struct {
	project projectFlags
	output  string
	failOn  string

	fix, dryRun               bool
	inCluster                 bool
	kubeconfig, as, namespace string
}

func newCheckCommand(build cli.Build) *cobra.Command {
	f := &checkFlags{}
	cmd := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Find faults in watches.yaml, roles, playbooks and charts",
		Long: `check reads the project in DIR, by default the working directory. It reports
tasks that would fail in a run, changes of ansible-core 2.19, objects that the API
server would refuse, and places where a custom resource could do more than it should.
It starts no run, but it needs the Python environment with the collections of runs.

It contacts a cluster only with --cluster. It then also reports
kinds that the cluster does not serve, rights that the account lacks, fields of
resources in the cluster that the project's CRDs do not have, and whether
Pod Security accepts the operator's pod. It changes nothing there.

With --fix it rewrites what is mechanical in a migration to ansible-core 2.19: conditions
that are not boolean or have templates, numbers where the API server wants text, and
modules that have another name now. It shows the changes as a diff, writes the files, and
checks again. It changes the one value alone; comments and layout stay. It names the findings that it cannot rewrite,
with the reason.

A comment at the line of a finding silences it, with a reason:
  # ensign: ignore=ID reason

Exit codes: 0, no finding is as bad as --fail-on says; 1, there is one; 2, the
project could not be checked.`,
		Example: `  # The project in this directory:
  ensign check

  # For a code host, with warnings as failures:
  ensign check --output=sarif --fail-on=warning path/to/project > check.sarif

  # What --fix would rewrite, and then rewrite it:
  ensign check --fix --dry-run
  ensign check --fix

  # Before a deployment, with the account that the operator will have:
  ensign check --cluster --as system:serviceaccount:my-system:my-manager`,
		Args: atMostOneDir,
		RunE: func(cmd *cobra.Command, args []string) error { return cli.AsUnable(f.run(cmd, build, args)) },
	}
	f.project.register(cmd)
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "`format`: text, json or sarif")
	cmd.Flags().StringVar(&f.failOn, "fail-on", "error", "lowest `severity` that ends with exit code 1: error, warning or none")
	cmd.Flags().BoolVar(&f.fix, "fix", false, "show what is mechanical to rewrite as a diff, rewrite it, and check again")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "with --fix: show the diff, and write nothing")
	cmd.Flags().BoolVar(&f.inCluster, "cluster", false, "compare with the cluster of the kubeconfig, too")
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "`file` that tells how to reach the API server; default KUBECONFIG or ~/.kube/config")
	cmd.Flags().StringVar(&f.as, "as", "", "`account` that the operator will have, whose rights --cluster asks for; default the kubeconfig's")
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "`namespace` that the operator is deployed to; default that of config/default")
	return cmd
}

// cluster returns the cluster for --cluster, nil without it.
func (f *checkFlags) cluster(o config.Options) (*check.Cluster, error) {
	switch {
	case !f.inCluster && (f.as != "" || f.namespace != "" || f.kubeconfig != ""):
		return nil, errors.New("--as, --namespace and --kubeconfig are for --cluster: add it")
	case !f.inCluster:
		return nil, nil //nolint:nilnil // There is none to compare with.
	}
	o.Kubeconfig = f.kubeconfig
	connected, err := cli.Connect(o)
	if err != nil {
		return nil, err
	}
	return &check.Cluster{Config: connected.Config, As: f.as, Namespace: f.namespace, Namespaces: o.Env.Namespaces()}, nil
}

func (f *checkFlags) run(cmd *cobra.Command, build cli.Build, args []string) error {
	switch {
	case !slices.Contains([]string{"text", "json", "sarif"}, f.output):
		return fmt.Errorf("--output=%s: allowed are text, json and sarif", f.output)
	case !slices.Contains([]string{"error", "warning", "none"}, f.failOn):
		return fmt.Errorf("--fail-on=%s: allowed are error, warning and none", f.failOn)
	case f.dryRun && !f.fix:
		return errors.New("--dry-run is for --fix: add it")
	}
	options, err := f.project.options(args)
	if err != nil {
		return err
	}
	cluster, err := f.cluster(options)
	if err != nil {
		return err
	}
	r, err := check.RunWith(cmd.Context(), options, cluster)
	if err == nil && f.fix {
		var written bool
		if written, err = f.rewrite(cmd, r, options.Dir); err == nil && written {
			r, err = check.RunWith(cmd.Context(), options, cluster)
		}
	}
	if err == nil {
		err = r.Relative(options.Dir).Write(cmd.OutOrStdout(), f.output, build.Version)
	}
	if err == nil && f.failOn != "none" && r.Fails(report.Severity(f.failOn)) {
		return cli.ExitWith(1, nil)
	}
	return err
}

// rewrite shows the allowed and the refused rewrites of the findings, and writes the allowed ones
// unless --dry-run is given. JSON and SARIF have the output for themselves: then it goes to
// standard error.
func (f *checkFlags) rewrite(cmd *cobra.Command, r report.Report, dir string) (written bool, err error) {
	out := cmd.OutOrStdout()
	if f.output != "text" {
		out = cmd.ErrOrStderr()
	}
	changes, refused := check.Fixes(r, dir)
	edits := 0
	for _, c := range changes {
		edits += c.Edits
		fmt.Fprint(out, c.Diff(report.Relative(dir, c.File)))
	}
	for _, refusal := range refused {
		fmt.Fprintf(out, "%s:%d:%d: not rewritten: %s\n", report.Relative(dir, refusal.File), refusal.Node.Line, refusal.Node.Column, refusal.Why)
	}
	verb := "rewritten"
	if f.dryRun {
		verb = "to be rewritten"
	}
	for _, c := range changes {
		if !f.dryRun {
			if err := c.Write(dir); err != nil {
				return false, err
			}
		}
	}
	fmt.Fprintf(out, "%d values in %d files %s, %d not\n\n", edits, len(changes), verb, len(refused))
	return !f.dryRun && edits > 0, nil
}

// projectFlags say which project a command is about.
type projectFlags struct{ watchesFile, rolesPath, collectionsPath string }

func (p *projectFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.watchesFile, "watches-file", "watches.yaml", "`file` that says which kinds run which content, relative to DIR")
	cmd.Flags().StringVar(&p.rolesPath, "ansible-roles-path", "", "`directories`, joined by \":\", where roles are searched; overrides ANSIBLE_ROLES_PATH")
	cmd.Flags().StringVar(&p.collectionsPath, "ansible-collections-path", "", "`directories`, joined by \":\", where collections are searched; overrides ANSIBLE_COLLECTIONS_PATH")
}

func (p *projectFlags) options(args []string) (config.Options, error) {
	o := config.Options{WatchesFile: p.watchesFile}
	o.AnsibleRolesPath, o.AnsibleCollectionsPath = p.rolesPath, p.collectionsPath
	err := cli.Here(&o)
	if len(args) == 0 || err != nil {
		return o, err
	}
	if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
		return o, fmt.Errorf("%s is not a directory; name the one with watches.yaml", args[0])
	}
	o.Dir, err = filepath.Abs(args[0])
	return o, err
}

func atMostOneDir(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return cli.ExitWith(2, fmt.Errorf("give one directory, not %d", len(args)))
	}
	return nil
}
