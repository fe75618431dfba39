package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ensign-operator/ensign/internal/author/check"
	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/config"
)

// checkFlags are the flags of "check".
type checkFlags struct {
	project projectFlags
	output  string
	failOn  string
}

func newCheckCommand(build Build) *cobra.Command {
	f := &checkFlags{}
	cmd := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Find faults in watches.yaml, roles and playbooks, without a cluster",
		Long: `check reads the project in DIR, the working directory if it is not given, and
reports what would fail in a run, what ansible-core 2.19 changed, what the API
server would refuse, and where a custom resource could do more than it should.
It starts no run and contacts no cluster; it needs the Python environment with
the collections that runs have.

A comment at the line of a finding silences it, with a reason:
  # ensign: ignore=ID reason

Exit codes: 0, no finding is as bad as --fail-on says; 1, there is one; 2, the
project could not be checked.`,
		Example: `  # The project in this directory:
  manager check

  # For a code host, with warnings as failures:
  manager check --output=sarif --fail-on=warning path/to/project > check.sarif`,
		Args: atMostOneDir, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, build, args) },
	}
	f.project.register(cmd)
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "`format`: text, json or sarif")
	cmd.Flags().StringVar(&f.failOn, "fail-on", "error", "lowest `severity` that ends with exit code 1: error, warning or none")
	cmd.SetFlagErrorFunc(usageError)
	return cmd
}

func (f *checkFlags) run(cmd *cobra.Command, build Build, args []string) error {
	if !slices.Contains([]string{"text", "json", "sarif"}, f.output) {
		return exitWith(2, fmt.Errorf("--output=%s: allowed are text, json and sarif", f.output))
	}
	if !slices.Contains([]string{"error", "warning", "none"}, f.failOn) {
		return exitWith(2, fmt.Errorf("--fail-on=%s: allowed are error, warning and none", f.failOn))
	}
	options, err := f.project.options(args)
	if err != nil {
		return exitWith(2, err)
	}
	r, err := check.Run(cmd.Context(), options)
	if err != nil {
		return exitWith(2, err)
	}
	if err := r.Relative(options.Dir).Write(cmd.OutOrStdout(), f.output, build.Version); err != nil {
		return exitWith(2, err)
	}
	if f.failOn != "none" && r.Fails(report.Severity(f.failOn)) {
		return exitWith(1, nil)
	}
	return nil
}

// projectFlags say which project a command is about.
type projectFlags struct{ watchesFile, rolesPath, collectionsPath string }

func (p *projectFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.watchesFile, "watches-file", "watches.yaml", "`file` that says which kinds run which content, relative to DIR")
	cmd.Flags().StringVar(&p.rolesPath, "ansible-roles-path", "", "`directories`, joined by \":\", where roles are searched; overrides ANSIBLE_ROLES_PATH")
	cmd.Flags().StringVar(&p.collectionsPath, "ansible-collections-path", "", "`directories`, joined by \":\", where collections are searched; overrides ANSIBLE_COLLECTIONS_PATH")
}

func (p *projectFlags) options(args []string) (config.Options, error) {
	o := config.Options{
		WatchesFile: p.watchesFile, AnsibleRolesPath: p.rolesPath, AnsibleCollectionsPath: p.collectionsPath, Env: config.NewEnvironment(os.Environ()),
	}
	dir := "."
	if len(args) > 0 {
		dir = args[0]
	}
	var err error
	if o.Dir, err = filepath.Abs(dir); err != nil {
		return o, err
	}
	if info, err := os.Stat(o.Dir); err != nil || !info.IsDir() {
		return o, fmt.Errorf("%s is no directory; name the one with watches.yaml", dir)
	}
	o.Executable, err = os.Executable()
	return o, err
}

func atMostOneDir(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return exitWith(2, fmt.Errorf("give one directory, not %d", len(args)))
	}
	return nil
}

func usageError(cmd *cobra.Command, err error) error {
	return exitWith(2, fmt.Errorf("%w; %q lists the flags", err, cmd.CommandPath()+" --help"))
}
