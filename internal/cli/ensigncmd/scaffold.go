package ensigncmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ensign-operator/ensign/internal/author/scaffold"
	"github.com/ensign-operator/ensign/internal/cli"
	"github.com/ensign-operator/ensign/internal/watches"
)

// planFlags are common to the commands that write files of a project.
type planFlags struct {
	dryRun  bool
	plugins []string
	ignored string
}

func (f *planFlags) register(set *pflag.FlagSet) {
	set.SortFlags = false
	set.BoolVar(&f.dryRun, "dry-run", false, "show which files would be written, and write nothing")
	// operator-sdk's, with the one value that makes sense here.
	set.StringSliceVar(&f.plugins, "plugins", nil, "")
	set.StringVar(&f.ignored, "project-version", "", "")
	set.StringVar(&f.ignored, "crd-version", "", "")
	for _, name := range []string{"plugins", "project-version", "crd-version"} {
		_ = set.MarkHidden(name)
	}
}

func (f *planFlags) check() error {
	for _, plugin := range f.plugins {
		if !strings.HasPrefix(plugin, "ansible") && !strings.HasPrefix(plugin, "helm") && !strings.HasPrefix(plugin, "hybrid.helm") {
			return fmt.Errorf("--plugins=%s: unknown plugin; all known ones make the same project: leave the flag out", plugin)
		}
	}
	return nil
}

// carryOut shows the plan, and writes its files unless the reader only wants to see it.
func (f *planFlags) carryOut(cmd *cobra.Command, plan *scaffold.Plan, next string) error {
	if err := plan.Check(); err != nil {
		return err
	}
	if !f.dryRun {
		if err := plan.Write(); err != nil {
			return err
		}
	}
	plan.Show(cmd.OutOrStdout())
	for _, note := range plan.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "note:", note)
	}
	if f.dryRun {
		next = "nothing was written (--dry-run)"
	}
	fmt.Fprintln(cmd.ErrOrStderr(), next)
	return nil
}

func newInitCommand() *cobra.Command {
	flags, project, kind, inGo := planFlags{}, scaffold.Project{}, kindFlags{}, false
	cmd := &cobra.Command{
		Use:   "init --domain DOMAIN | init --chart CHART --api-version GROUP/VERSION",
		Short: "Write the project of a new operator into this directory",
		Long: `init writes the project of a new operator into the working directory: an empty
watches.yaml, places for roles and playbooks, manifests for kustomize, a Molecule
scenario, a Dockerfile and a Makefile. "create api" then adds kinds, charts too.

With --chart it also adds a kind that a Helm chart reconciles, as "create api" does,
so that one command makes an operator of the chart. ` + chartHelp + `

With --go it writes a Go module in kubebuilder's layout, whose cmd/main.go makes the
manager: "kubebuilder create api" then adds kinds with reconcilers in Go.

It overwrites nothing.`,
		Example: `  mkdir mysql-operator && cd mysql-operator
  ensign init --domain myorg.tld
  ensign create api --group myapp --version v1 --kind MySQLCluster --generate-role

  # The operator of a chart:
  ensign init --chart ../memcached --api-version cache.myorg.tld/v1alpha1 --kind Memcached
  ensign init --chart oci://registry.myorg.tld/charts/memcached --chart-version 1.2.3 --api-version cache.myorg.tld/v1

  # With reconcilers in Go beside roles, playbooks and charts:
  ensign init --domain myorg.tld --go --repo example.com/mysql-operator`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return initialize(cmd, &flags, project, &kind, inGo) },
	}
	flags.register(cmd.Flags())
	cmd.Flags().StringVar(&project.Domain, "domain", "", "`domain` that ends the API groups of the kinds, such as myorg.tld; with --api-version by default its group")
	cmd.Flags().StringVar(&project.ProjectName, "project-name", "", "`name` that begins the names of what is installed; default the directory's")
	kind.register(cmd.Flags())
	cmd.Flags().BoolVar(&inGo, "go", false, "write a Go module, for reconcilers in Go beside roles, playbooks and charts")
	cmd.Flags().StringVar(&project.Repo, "repo", "", "`path` of the Go module, such as example.com/mysql-operator")
	return cmd
}

// initialize writes a project, with a kind if a chart is given.
func initialize(cmd *cobra.Command, flags *planFlags, project scaffold.Project, kind *kindFlags, inGo bool) error {
	if err := flags.check(); err != nil {
		return err
	}
	project.Program, project.Schema = cmd.Root().Name(), watches.Schema()
	next := fmt.Sprintf("next: %s create api --group GROUP --version v1 --kind KIND --generate-role", project.Program)
	switch {
	case inGo && project.Repo == "":
		return errors.New("--repo is missing: it is the path of the Go module, as in --go --repo example.com/mysql-operator")
	case !inGo && project.Repo != "":
		return errors.New("--repo is the path of a Go module: add --go for a project with reconcilers in Go, or leave --repo out; the URL of a chart's repository is --chart-repo")
	case kind.source.Chart == "" && kind.given(cmd):
		return errors.New("--chart is missing: --api-version, --group, --version and --kind are for the chart that the project begins with, and create api names other kinds; helm create NAME writes an example of a chart")
	case inGo:
		project.Source = clone()
		next += ", or kubebuilder create api --group GROUP --version v1 --kind KIND --resource --controller"
	}
	var kinds []scaffold.Kind
	if kind.source.Chart != "" {
		remove, err := kind.fetch(cmd)
		if err != nil {
			return err
		}
		defer remove()
		kinds, next = []scaffold.Kind{kind.Kind}, nextOfChart
	}
	plan, err := scaffold.Init(".", project, kinds...)
	if err != nil {
		return err
	}
	return flags.carryOut(cmd, plan, next)
}

// clone returns the directory of the clone of Ensign in whose bin this program lies; "" if there is
// none.
func clone() string {
	executable, err := os.Executable()
	if err == nil {
		executable, err = filepath.EvalSymlinks(executable)
	}
	dir := filepath.Dir(filepath.Dir(executable))
	text, readErr := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || readErr != nil || !strings.HasPrefix(string(text), "module github.com/ensign-operator/ensign\n") {
		return ""
	}
	return dir
}

func newCreateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Add to the project in this directory: create api",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.ExitWith(2, fmt.Errorf("unknown command create %s; there is: create api", args[0]))
			}
			return cli.ExitWith(2, errors.New("what is to be created? There is: create api"))
		},
		RunE: func(*cobra.Command, []string) error { return nil }, // Its arguments are refused.
	}
	cmd.AddCommand(newCreateAPICommand())
	return cmd
}

func newCreateAPICommand() *cobra.Command {
	flags, kind := planFlags{}, kindFlags{}
	cmd := &cobra.Command{
		Use:   "api --group GROUP --version VERSION --kind KIND",
		Short: "Add a kind to the project, with its content",
		Long: `api adds a kind to the project in the working directory: its CRD, a sample,
roles for people, the operator's rights, an entry in watches.yaml and a play for
Molecule. On request it also adds a role or playbook with an example task, or a chart.

Without --generate-role and --generate-playbook the role roles/KIND, or
playbooks/KIND.yml, has to be there. If the role has argument specs
(meta/argument_specs.yml), they become the schema of the spec: options in
camelCase, with types, defaults, choices and descriptions. Options that begin with
the role's name are the operator's own settings, and are left out.

With --chart a Helm chart reconciles the kind. The schema of the spec comes from
values.schema.json, or else from the types in values.yaml, the sample from
values.yaml, and the rights from what the chart renders with the sample.
` + chartHelp + `

--crd-only writes the schema of a kind's spec again, after a change of argument
specs, values or the chart. Additions by people to the CRD stay. It adds fields that are
new or required to the sample, the role's defaults and Molecule's play. It names values
that no longer fit there with their line, and does not change them.

It overwrites nothing, and you can repeat it for other kinds.`,
		Example: `  ensign create api --group myapp --version v1 --kind MySQLCluster --generate-role --finalizer

  # A Helm chart as an operator:
  ensign create api --group apps --version v1 --kind Nginx --chart ../charts/nginx
  ensign create api --group apps --version v1 --kind Nginx --chart nginx --chart-repo https://charts.myorg.tld

  # After a change of roles/mysqlcluster/meta/argument_specs.yml:
  ensign create api --group myapp --version v1 --kind MySQLCluster --crd-only`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			remove, err := kind.fetch(cmd)
			if err != nil {
				return err
			}
			defer remove()
			plan, err := scaffold.CreateAPI(".", kind.Kind)
			if err != nil {
				return err
			}
			return flags.carryOut(cmd, plan, nextAfter(kind.Kind, plan))
		},
	}
	flags.register(cmd.Flags())
	set := cmd.Flags()
	kind.register(set)
	set.BoolVar(&kind.GenerateRole, "generate-role", false, "write a role with an example task")
	set.BoolVar(&kind.GeneratePlaybook, "generate-playbook", false, "write a playbook with an example task")
	set.BoolVar(&kind.Finalizer, "finalizer", false, "write content for the deletion, too")
	set.BoolVar(&kind.DefinitionOnly, "crd-only", false, "write the schema of a kind of the project again, and name or add what follows from it")
	return cmd
}

// nextOfChart says what comes after a chart has become a kind.
const nextOfChart = "next: make run, and in another terminal kubectl apply -k config/samples"

// nextAfter says what comes after create api.
func nextAfter(k scaffold.Kind, plan *scaffold.Plan) string {
	switch {
	case k.DefinitionOnly:
		return fmt.Sprintf("next: %s check, then make install", k.Program)
	case k.Chart != "":
		return nextOfChart
	}
	return fmt.Sprintf("next: write the tasks, then %s run-once -f %s", k.Program, plan.Sample)
}
