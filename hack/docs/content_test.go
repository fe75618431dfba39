package docs

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// helps returns what the help of the program says, by its commands.
func helps(command *cobra.Command) map[string]string {
	texts := map[string]string{command.CommandPath() + " --help": command.Short + "\n\n" + command.Long}
	for _, sub := range command.Commands() {
		maps.Copy(texts, helps(sub))
	}
	return texts
}

// onlyAnsible are paragraphs that are about roles and playbooks and not about charts, by words in
// them.
var onlyAnsible = []string{
	"`{name, role or playbook, vars}`", // A chart has no finalizer of its own.
	"A run of a role or playbook spends",
	"A field of this table beside a role or playbook",
}

// TestKindsOfContentAreNamedInFull: whoever says what content is, names charts beside roles and
// playbooks, in the same paragraph or row.
func TestKindsOfContentAreNamedInFull(t *testing.T) {
	texts := all(t)
	for _, program := range programs() {
		maps.Copy(texts, helps(program))
	}
	texts["config/manifests"] = read(t, "config/manifests/clusterserviceversion.yaml")
	ansible := regexp.MustCompile(`(?i)\broles?,? (?:and|or) (?:a )?playbooks?\b`)
	for name, text := range texts {
		if slices.Contains([]string{"CHANGELOG.md", "ARCHITECTURE.md"}, name) || strings.HasPrefix(filepath.Base(name), "tutorial") || strings.HasPrefix(name, "collections/") {
			continue // They tell of a change, of packages, of an operator of roles, of modules.
		}
		for paragraph := range strings.SplitSeq(strings.ReplaceAll(text, "\n|", "\n\n|"), "\n\n") {
			line := strings.Join(strings.Fields(paragraph), " ")
			about := slices.ContainsFunc(onlyAnsible, func(words string) bool { return strings.Contains(strings.ToLower(line), strings.ToLower(words)) })
			if ansible.MatchString(line) && !about && !regexp.MustCompile(`(?i)\bcharts?\b|\bhelm\b`).MatchString(line) {
				t.Errorf("%s names roles and playbooks and no charts: %s", name, line)
			}
		}
	}
}

// mayAskForCharts are the files that may ask whether a watch has a chart, beside those of the chart
// backend: each chooses what stands for the kind of content from then on.
var mayAskForCharts = []string{
	"internal/watches/chart.go", "internal/watches/kinds.go", // The fields of charts; ContentKind.
	"internal/operator/chart.go",       // The operator's backend for charts.
	"internal/author/check/backend.go", // That of check.
}

// TestNobodyElseAsksForCharts: a kind of content says itself what is special about it, so that a
// further kind needs no change elsewhere.
func TestNobodyElseAsksForCharts(t *testing.T) {
	asks := regexp.MustCompile(`\.Chart\s*[!=]=\s*nil`)
	asking := map[string]bool{}
	for _, name := range tracked(t) {
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "internal/chart/") {
			asking[name] = asks.MatchString(read(t, name))
		}
	}
	for name, asks := range asking {
		if asks && !slices.Contains(mayAskForCharts, name) {
			t.Errorf("%s asks whether a watch has a chart; let the kind of content declare what it wants to know", name)
		}
	}
	for _, name := range mayAskForCharts {
		if !asking[name] {
			t.Errorf("%s may ask for charts, and does not", name)
		}
	}
}

// TestFieldsOfWatchesAreInTheReference holds the schema of watches.yaml and its tables against
// each other.
func TestFieldsOfWatchesAreInTheReference(t *testing.T) {
	var schema struct {
		Definitions struct {
			Watch struct {
				Properties map[string]any `json:"properties"`
			} `json:"watch"`
		} `json:"definitions"`
	}
	if err := json.Unmarshal([]byte(read(t, "internal/watches/watches.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	fields := slices.Sorted(maps.Keys(schema.Definitions.Watch.Properties))
	page := pages(t)["docs/reference-watches.md"]
	said := append(firstCells(part(t, page, "\n## Fields\n", "\n## ")), firstCells(part(t, page, "\n## Charts\n", "\n## "))...)
	for _, field := range fields {
		if !slices.Contains(said, field) {
			t.Errorf("no table has %s", field)
		}
	}
	for _, field := range said {
		if !slices.Contains(fields, field) {
			t.Errorf("watches.yaml has no field %s", field)
		}
	}
}

// TestCommandsOfReadmeAreThoseOfTheQuickstart: what README shows of the five minutes is what the
// quickstart, which a suite executes, does.
func TestCommandsOfReadmeAreThoseOfTheQuickstart(t *testing.T) {
	section := part(t, read(t, "README.md"), "\n## Five minutes to your own operator\n", "\n## ")
	quickstart, commands := read(t, "docs/quickstart.md"), 0
	for _, line := range code(section) {
		if regexp.MustCompile(`^(?:kubectl|bin/|make )`).MatchString(line) {
			commands++
			if !strings.Contains(quickstart, "\n"+line+"\n") {
				t.Errorf("the quickstart has no line %q", line)
			}
		}
	}
	if commands == 0 {
		t.Error("README shows no command")
	}
}

// TestMigrationNamesEachCommand: what an operator's people get beside what they had.
func TestMigrationNamesEachCommand(t *testing.T) {
	page := read(t, "docs/howto-migrate.md")
	for _, command := range commands() {
		name := command.Name()
		if !regexp.MustCompile("`"+name+`\b`).MatchString(page) && !slices.Contains([]string{"run", "version", "help"}, name) {
			t.Errorf("docs/howto-migrate.md does not name %s", name)
		}
	}
	if match := regexp.MustCompile("(?m)^\\| [^|]*`(?:init|create|check)[^|]*\\| write the files by hand").FindString(page); match != "" {
		t.Errorf("there are commands for this: %s", match)
	}
}

// inherited are the fields of watches.yaml and the flags that the base image of ansible-operator has too.
var inherited = strings.Fields(`
	group version kind role playbook vars finalizer selector reconcilePeriod maxRunnerArtifacts manageStatus markUnsafe blacklist
	snakeCaseParameters watchDependentResources watchClusterScopedResources watchAnnotationsChanges
	ansible-args ansible-collections-path ansible-log-events ansible-roles-path ansible-verbosity enable-http2 enable-leader-election
	graceful-shutdown-timeout health-probe-bind-address help inject-owner-ref kubeconfig leader-elect leader-elect-lease-duration
	leader-elect-renew-deadline leader-elect-resource-lock leader-election-id leader-election-namespace max-concurrent-reconciles
	max-workers metrics-addr metrics-bind-address metrics-require-rbac metrics-secure proxy-cache-max-bytes proxy-port reconcile-period
	watches-file zap-devel zap-encoder zap-log-level zap-stacktrace-level zap-time-encoding suppress-override-values`)

// TestMigrationNamesEachNewFieldAndFlag: the page has a list of what the base image does not have.
func TestMigrationNamesEachNewFieldAndFlag(t *testing.T) {
	added := part(t, read(t, "docs/howto-migrate.md"), "\n## New\n", "\n## ")
	named := firstCells(part(t, pages(t)["docs/reference-watches.md"], "\n## Fields\n", "\n## "))
	programs()["manager"].Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			named = append(named, "--"+flag.Name)
		}
	})
	for _, name := range named {
		if !slices.Contains(inherited, strings.TrimPrefix(name, "--")) && !strings.Contains(added, "`"+name+"`") {
			t.Errorf("docs/howto-migrate.md does not list %s as new", name)
		}
	}
}

// ownPages may name the objects of this repository's operator.
var ownPages = []string{"docs/howto-helm.md", "docs/howto-mysql-operator.md", "docs/tutorial-mysql.md", "ARCHITECTURE.md", "CONTRIBUTING.md"}

// TestCommandsNameTheReadersOperator: an operator of a project has the project's name, its namespace, its Deployment and
// its lease. A command with this repository's names fails there.
func TestCommandsNameTheReadersOperator(t *testing.T) {
	own := regexp.MustCompile(`\bensign-(system|manager|seal)\b|ensign\.myapp\.myorg\.tld`)
	for name, page := range pages(t) {
		if slices.Contains(ownPages, name) || !strings.HasPrefix(name, "docs/") {
			continue
		}
		for _, piece := range code(page) {
			if found := own.FindString(piece); found != "" && strings.Contains(piece, " ") && !strings.Contains(piece, "-L ensign-seal") {
				t.Errorf("%s: %q names %s; name the objects of a project, such as shop-manager in shop-system", name, piece, found)
			}
		}
	}
}

// TestExamplesSayWhatTheyNeed: the manager of an example needs Python beside the programs, and a cluster.
func TestExamplesSayWhatTheyNeed(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "examples/*/README.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no example (error %v)", err)
	}
	for _, file := range files {
		name := strings.TrimPrefix(file, root+"/")
		for _, need := range []string{"make build python", "make devcluster"} {
			if !strings.Contains(read(t, name), need) {
				t.Errorf("%s does not say %s", name, need)
			}
		}
	}
}

// TestFieldsOfTheKindsAreInTheirPage holds the specs of this operator's kinds, and the variables of
// its roles, against their page.
func TestFieldsOfTheKindsAreInTheirPage(t *testing.T) {
	page := read(t, "docs/howto-mysql-operator.md")
	said := spans(page)
	files, err := filepath.Glob(filepath.Join(root, "config/crd/bases/*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRD (error %v)", err)
	}
	known := map[string]bool{}
	for _, file := range files {
		var crd apiextensions.CustomResourceDefinition
		if err := yaml.Unmarshal([]byte(read(t, strings.TrimPrefix(file, root+"/"))), &crd); err != nil {
			t.Fatal(err)
		}
		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		for field, schema := range spec.Properties {
			known[field] = true
			named := slices.ContainsFunc(said, func(word string) bool { return word == field || strings.HasPrefix(word, field+".") })
			for below := range schema.Properties {
				known[field+"."+below] = true
			}
			if !named {
				t.Errorf("the page does not name spec.%s of %s", field, crd.Spec.Names.Kind)
			}
		}
	}
	for _, table := range strings.Split(page, "| Field | Default |")[1:] {
		rows, _, _ := strings.Cut(table, "\n\n")
		for _, field := range firstCells(rows) {
			if !known[field] {
				t.Errorf("no kind has the field %s", field)
			}
		}
	}
	variables := read(t, "watches.yaml")
	for _, pattern := range []string{"roles/*/defaults/*.yml", "roles/*/meta/*.yml", "roles/*/tasks/*.yml", "playbooks/*.yml"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			variables += read(t, strings.TrimPrefix(file, root+"/"))
		}
	}
	for _, word := range said {
		if regexp.MustCompile(`^(?:mysql[a-z]+_[a-z_]+|MYSQL[A-Z]+_[A-Z_]+)$`).MatchString(word) && !strings.Contains(variables, word) {
			t.Errorf("no role has the variable %s", word)
		}
	}
}
