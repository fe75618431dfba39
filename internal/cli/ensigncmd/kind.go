package ensigncmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ensign-operator/ensign/internal/author/scaffold"
	"github.com/ensign-operator/ensign/internal/chart/describe"
)

// chartHelp says what --chart takes.
const chartHelp = `CHART is a
directory, an archive, the URL of one, REPOSITORY/NAME as helm repo add knows them, a
name with --chart-repo URL, or a reference that begins with oci://. Credentials are
those of helm repo add and helm registry login.`

// kindFlags are the flags that name a kind and its chart.
type kindFlags struct {
	scaffold.Kind

	source describe.Source
}

func (f *kindFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.Group, "group", "", "`group` of the kind, without the project's domain; '' for the domain alone")
	set.StringVar(&f.Version, "version", "", "`version` of the kind, such as v1 or v1alpha1")
	set.StringVar(&f.APIVersion, "api-version", "", "`group/version` of the kind, instead of --group and --version")
	set.StringVar(&f.Kind.Kind, "kind", "", "`name` of the kind, such as MySQLCluster; of a chart by default its name")
	set.StringVar(&f.Plural, "plural", "", "`name` of the kind's resources in lower case, if it is not the usual plural, such as menus")
	set.StringVar(&f.source.Chart, "chart", "", "Helm `chart` that reconciles the kind; it is copied to charts/, unless it is in the project")
	set.StringVar(&f.source.Repo, "chart-repo", "", "`URL` of the chart's repository; --chart is then the chart's name")
	set.StringVar(&f.source.Version, "chart-version", "", "`version` of the chart in its repository or registry, or a range; default the newest that is no pre-release")
	set.BoolVar(&f.source.PlainHTTP, "chart-plain-http", false, "ask the chart's registry by HTTP, without TLS")
	// operator-sdk's spelling.
	set.StringVar(&f.source.Chart, "helm-chart", "", "")
	set.StringVar(&f.source.Repo, "helm-chart-repo", "", "")
	set.StringVar(&f.source.Version, "helm-chart-version", "", "")
	for _, name := range []string{"helm-chart", "helm-chart-repo", "helm-chart-version"} {
		_ = set.MarkHidden(name)
	}
	set.StringVar(&f.ValuesFile, "crd-from-values", "", "YAML `file` whose values give the spec its schema, by their types and comments")
	set.BoolVar(&f.Namespaced, "namespaced", true, "the objects of the kind are in namespaces")
}

// given reports whether a flag is set that says something of a kind.
func (f *kindFlags) given(cmd *cobra.Command) bool {
	return f.Group+f.Version+f.APIVersion+f.Kind.Kind+f.Plural+f.ValuesFile+f.source.Repo+f.source.Version != "" || cmd.Flags().Changed("namespaced")
}

// fetch completes the kind, with a chart from elsewhere if it has one, until remove is called.
func (f *kindFlags) fetch(cmd *cobra.Command) (remove func(), err error) {
	f.Program, f.NoGroup = cmd.Root().Name(), cmd.Flags().Changed("group") && f.Group == ""
	program, err := chartExec()
	if err != nil {
		return nil, err
	}
	f.Render = func(path string, spec map[string]any) (describe.Rendered, error) {
		return describe.Render(cmd.Context(), program, path, spec)
	}
	if f.source.Chart == "" {
		if f.source.Repo+f.source.Version != "" {
			return nil, errors.New("--chart is missing: it is the name of the chart in the repository")
		}
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "ensign-chart-")
	if err != nil {
		return nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) } // The files are its own, in the temporary directory.
	f.ChartNamed = f.source.Chart
	if f.Chart, err = f.source.Fetch(cmd.Context(), program, dir, cmd.ErrOrStderr()); err != nil {
		remove()
		return nil, err
	}
	return remove, nil
}

// chartExec returns the path of the program chart-exec, which lies beside this one.
func chartExec() (string, error) {
	executable, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the path of this program: %w", err)
	}
	return filepath.Join(filepath.Dir(executable), "chart-exec"), nil
}
