package scaffold

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

func written(t *testing.T, plan *Plan, err error) {
	t.Helper()
	if err == nil {
		err = plan.Write()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// newProject is this repository's operator, as far as names go.
func newProject(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	plan, err := Init(dir, Project{Domain: "myorg.tld", ProjectName: "ensign", Program: "ensign"})
	written(t, plan, err)
	return dir
}

func cluster() Kind {
	return Kind{Group: "myapp", Version: "v1", Kind: "MySQLCluster", GenerateRole: true, Namespaced: true}
}

// TestTheManifestsAreThoseOfThisRepository keeps the templates from drifting.
func TestTheManifestsAreThoseOfThisRepository(t *testing.T) {
	dir, root := newProject(t), scratch.Repository(t)
	plan, err := CreateAPI(dir, cluster())
	written(t, plan, err)
	for _, name := range []string{
		"default/kustomization.yaml", "manager/kustomization.yaml", "manager/namespace.yaml", "metrics/kustomization.yaml", "metrics/service.yaml",
		"rbac/leader_election_role.yaml", "rbac/leader_election_role_binding.yaml", "rbac/metrics_auth_role.yaml",
		"rbac/metrics_auth_role_binding.yaml", "rbac/metrics_reader_role.yaml", "rbac/role_binding.yaml", "rbac/service_account.yaml",
		"prometheus/kustomization.yaml", "prometheus/monitor.yaml", "prometheus/rules.yaml", "grafana/ensign.json",
		"network-policy/kustomization.yaml", "network-policy/manager.yaml", "overlays/jobs/kustomization.yaml", "overlays/jobs/manager_patch.yaml",
		"rbac/mysqlcluster_admin_role.yaml", "rbac/mysqlcluster_editor_role.yaml", "rbac/mysqlcluster_viewer_role.yaml",
	} {
		if diff := cmp.Diff(read(t, root, "config", name), read(t, dir, "config", name)); diff != "" {
			t.Errorf("config/%s (-repository +project):\n%s", name, diff)
		}
	}
	// The Deployment, but for comments.
	if diff := cmp.Diff(parsed(t, root, "config/manager/manager.yaml"), parsed(t, dir, "config/manager/manager.yaml")); diff != "" {
		t.Errorf("the Deployment (-repository +project):\n%s", diff)
	}
	conditions := func(dir string) any {
		crd := parsed(t, dir, "config/crd/bases/myapp.myorg.tld_mysqlclusters.yaml")
		for _, key := range []string{"spec", "versions"} {
			crd, _ = crd.(map[string]any)[key]
		}
		node := crd.([]any)[0]
		for _, key := range []string{"schema", "openAPIV3Schema", "properties", "status", "properties", "conditions"} {
			node = node.(map[string]any)[key]
		}
		return node
	}
	if diff := cmp.Diff(conditions(root), conditions(dir)); diff != "" {
		t.Errorf("the conditions (-repository +project):\n%s", diff)
	}
}

// TestTheWorkflowHasThePinsOfThisRepository keeps the actions of a project's workflow from drifting.
func TestTheWorkflowHasThePinsOfThisRepository(t *testing.T) {
	own := read(t, scratch.Repository(t), ".github", "workflows", "test.yml")
	for line := range strings.Lines(read(t, newProject(t), ".github", "workflows", "test.yml")) {
		if strings.Contains(line, "- uses: ") && !strings.Contains(own, line) {
			t.Errorf("this repository's workflow does not have %q", line)
		}
	}
}

func parsed(t *testing.T, parts ...string) (value any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, parts...)), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// TestWatchesNameTheirSchema: an editor finds it beside the file, and kinds that are added leave the line there.
func TestWatchesNameTheirSchema(t *testing.T) {
	dir := t.TempDir()
	plan, err := Init(dir, Project{Domain: "myorg.tld", ProjectName: "ensign", Program: "ensign", Schema: watches.Schema()})
	written(t, plan, err)
	plan, err = CreateAPI(dir, cluster())
	written(t, plan, err)
	const line = "---\n# yaml-language-server: $schema=watches.schema.json\n"
	if got := read(t, dir, "watches.yaml"); !strings.HasPrefix(got, line) || read(t, dir, "watches.schema.json") != string(watches.Schema()) {
		t.Errorf("want %q first, got\n%s", line, got)
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	dir := newProject(t)
	if _, err := Init(dir, Project{Domain: "myorg.tld", ProjectName: "ensign"}); err == nil || !strings.Contains(err.Error(), "create api adds kinds to it") {
		t.Errorf("a second init: %v", err)
	}
	elsewhere := t.TempDir()
	scratch.Write(t, elsewhere, map[string]string{"Dockerfile": "mine\n"})
	if plan, err := Init(elsewhere, Project{Domain: "myorg.tld", ProjectName: "ensign"}); err != nil || plan.Write() == nil || read(t, elsewhere, "Dockerfile") != "mine\n" {
		t.Errorf("init beside a Dockerfile: %v", err)
	}
	scratch.Write(t, dir, map[string]string{"roles/mysqlcluster/tasks/main.yml": "mine\n"})
	before := read(t, dir, "watches.yaml")
	plan, err := CreateAPI(dir, cluster())
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Write(); err == nil || !strings.Contains(err.Error(), "roles/mysqlcluster/tasks/main.yml") {
		t.Errorf("want an error that names the file, got %v", err)
	}
	if read(t, dir, "roles/mysqlcluster/tasks/main.yml") != "mine\n" || read(t, dir, "watches.yaml") != before {
		t.Error("something was written")
	}
}

func TestNames(t *testing.T) {
	for name, test := range map[string]struct {
		change func(k *Kind)
		want   string
	}{
		"no group":              {func(k *Kind) { k.Group = "" }, "--group is missing"},
		"the domain in a group": {func(k *Kind) { k.Group = "myapp.myorg.tld" }, "leave the domain out"},
		"a group in capitals":   {func(k *Kind) { k.Group = "MyApp" }, `--group="MyApp"`},
		"a version of Helm's":   {func(k *Kind) { k.Version = "1.0" }, `--version="1.0"`},
		"a kind of a digit":     {func(k *Kind) { k.Kind = "4you" }, `--kind="4you"`},
		"a kind with a dot":     {func(k *Kind) { k.Kind = "My.Kind" }, `--kind="My.Kind"`},
		"no kind":               {func(k *Kind) { k.Kind = "" }, `--kind=""`},
		"two groups":            {func(k *Kind) { k.APIVersion = "myorg.tld/v1" }, "leave --group and --version out"},
		"another domain":        {func(k *Kind) { *k = Kind{APIVersion: "x.org/v1", Kind: "X"} }, "the groups of this project end with its domain, myorg.tld"},
		"no version":            {func(k *Kind) { *k = Kind{APIVersion: "myorg.tld", Kind: "X"} }, "write a group and a version"},
		"a kind of 64":          {func(k *Kind) { k.Kind = "A" + strings.Repeat("a", 63) }, "at most 63"},
		"both contents":         {func(k *Kind) { k.GeneratePlaybook = true }, "give one of them"},
		"no content":            {func(k *Kind) { k.GenerateRole = false }, "neither roles/mysqlcluster nor playbooks/mysqlcluster.yml"},
		"no such kind yet":      {func(k *Kind) { k.DefinitionOnly = true }, "the project has no v1 MySQLCluster"},
	} {
		t.Run(name, func(t *testing.T) {
			k := cluster()
			test.change(&k)
			if _, err := CreateAPI(newProject(t), k); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("want an error with %q, got %v", test.want, err)
			}
		})
	}
	for domain, want := range map[string]string{"": "--domain is missing", "My Org": "DNS name"} {
		if _, err := Init(t.TempDir(), Project{Domain: domain, ProjectName: "x"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--domain=%q: want %q, got %v", domain, want, err)
		}
	}
	if _, err := Init(t.TempDir(), Project{Domain: "a.b", ProjectName: "Under_score"}); err == nil || !strings.Contains(err.Error(), "--project-name") {
		t.Errorf("got %v", err)
	}
	if _, err := CreateAPI(t.TempDir(), cluster()); err == nil || !strings.Contains(err.Error(), "run init first") {
		t.Errorf("got %v", err)
	}
}

// TestAReservedGroupSaysSo: without the annotation the API server refuses the CRD.
func TestAReservedGroupSaysSo(t *testing.T) {
	for domain, want := range map[string]bool{"k8s.io": true, "x-k8s.io": false, "sigs.k8s.io": true, "kubernetes.io": true, "mykubernetes.io": false, "myorg.tld": false} {
		dir := t.TempDir()
		plan, err := Init(dir, Project{Domain: domain, ProjectName: "ensign", Program: "ensign"})
		written(t, plan, err)
		plan, err = CreateAPI(dir, cluster())
		written(t, plan, err)
		definition := read(t, dir, "config/crd/bases/myapp."+domain+"_mysqlclusters.yaml")
		if got := strings.Contains(definition, "  annotations:\n    api-approved.kubernetes.io: unapproved, "); got != want {
			t.Errorf("%s: want the annotation: %t, got\n%s", domain, want, definition[:300])
		}
		if got := strings.Contains(strings.Join(plan.Notes, "\n"), "the Kubernetes project's own"); got != want {
			t.Errorf("%s: want a note: %t, got %q", domain, want, plan.Notes)
		}
	}
}

// TestKindsThatAreThere: each error says what there is, or what to do.
func TestKindsThatAreThere(t *testing.T) {
	dir := newProject(t)
	plan, err := CreateAPI(dir, cluster())
	written(t, plan, err)
	for want, change := range map[string]func(*Kind){
		"a further version is for you to write: into spec.versions of config/crd/bases/myapp.myorg.tld_mysqlclusters.yaml": func(k *Kind) { k.Version = "v2" },
		"it has (PROJECT): v1 MySQLCluster of group myapp":                                                                 func(k *Kind) { k.Kind, k.DefinitionOnly = "MySQLClusters", true },
	} {
		k := cluster()
		change(&k)
		if _, err := CreateAPI(dir, k); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	k := cluster()
	k.Kind = "Job"
	plan, err = CreateAPI(dir, k)
	if err != nil || !strings.Contains(strings.Join(plan.Notes, "\n"), "which kubectl means by job: say jobs.myapp.myorg.tld for yours") {
		t.Errorf("got %v", err)
	}
}

func TestASecondKindLeavesTheFirstAlone(t *testing.T) {
	dir := newProject(t)
	plan, err := CreateAPI(dir, cluster())
	written(t, plan, err)
	if _, err := CreateAPI(dir, cluster()); err == nil || !strings.Contains(err.Error(), "has the kind MySQLCluster") {
		t.Errorf("the same kind again: %v", err)
	}
	edited := strings.Replace(read(t, dir, "watches.yaml"), "  role: mysqlcluster\n", "  role: mysqlcluster # ours\n  vars:\n    # why\n    a: 1\n", 1) + "# the end\n"
	scratch.Write(t, dir, map[string]string{"watches.yaml": edited})
	plan, err = CreateAPI(dir, Kind{Group: "myapp", Version: "v1", Kind: "Backup", GeneratePlaybook: true, Namespaced: true})
	written(t, plan, err)
	want := strings.TrimSuffix(edited, "# the end\n") + "\n- group: myapp.myorg.tld\n  version: v1\n  kind: Backup\n  playbook: playbooks/backup.yml\n  ready: manager\n  health: true\n# the end\n"
	if diff := cmp.Diff(want, read(t, dir, "watches.yaml")); diff != "" {
		t.Errorf("watches.yaml (-want +got):\n%s", diff)
	}
	if rules := read(t, dir, "config/rbac/role.yaml"); strings.Count(rules, "[configmaps]") != 1 || strings.Count(rules, "backups") != 2 {
		t.Errorf("config/rbac/role.yaml:\n%s", rules)
	}
}

func TestSchema(t *testing.T) {
	dir := newProject(t)
	scratch.Write(t, dir, map[string]string{"roles/mysqlcluster/meta/argument_specs.yml": `
argument_specs:
  main:
    options:
      ansible_operator_meta: {type: dict, required: true}
      mysqlcluster_timeout: {type: int, default: 3}
      mysql_port: {type: int, default: 3306, description: ["Port, as in C(my.cnf).", More.]}
      enable_http_s: {type: bool, required: true}
      mode: {choices: ["on", "off"], default: "on"}
      users:
        type: list
        elements: dict
        options:
          user_name: {type: str, required: true}
      extra: {type: dict}
      text: {default: "{{ other }}"}
      ratio: {type: float}
      words: {type: list}
`})
	k := cluster()
	k.GenerateRole = false
	plan, err := CreateAPI(dir, k)
	written(t, plan, err)
	want := `type: object
required: [enableHttpS]
properties:
  mysqlPort:
    type: integer
    description: Port, as in ` + "`my.cnf`" + `. More.
    default: 3306
  enableHttpS:
    type: boolean
  mode:
    type: string
    enum: ["on", "off"]
    default: "on"
  users:
    type: array
    items:
      type: object
      required: [userName]
      properties:
        userName:
          type: string
  extra:
    type: object
    x-kubernetes-preserve-unknown-fields: true
  text:
    type: string
  ratio:
    type: number
  words:
    type: array
    items:
      x-kubernetes-preserve-unknown-fields: true
`
	definition := read(t, dir, "config/crd/bases/myapp.myorg.tld_mysqlclusters.yaml")
	if !strings.Contains(definition, indent(14, want)) {
		t.Errorf("want the schema\n%s\nin\n%s", want, definition)
	}
	if !strings.Contains(read(t, dir, "config/samples/myapp_v1_mysqlcluster.yaml"), "  mysqlPort: 3306\n  enableHttpS: true\n") {
		t.Error("the sample has not what is required")
	}
	if len(plan.Notes) != 1 || !strings.Contains(plan.Notes[0], "template") {
		t.Errorf("notes: %q", plan.Notes)
	}
	k.DefinitionOnly = true
	scratch.Write(t, dir, map[string]string{"roles/mysqlcluster/meta/argument_specs.yml": "argument_specs: {main: {options: {size: {type: int}}}}\n"})
	plan, err = CreateAPI(dir, k)
	written(t, plan, err)
	if definition := read(t, dir, "config/crd/bases/myapp.myorg.tld_mysqlclusters.yaml"); !strings.Contains(definition, "size:") || strings.Contains(definition, "mysqlPort") {
		t.Errorf("--crd-only wrote\n%s", definition)
	}
}

func TestFaultsOfArgumentSpecs(t *testing.T) {
	for options, want := range map[string]string{
		"{Size: {}}":                        "argument_specs.yml:3: no key of a custom resource",
		"{a: {type: number}}":               `type "number" is not known`,
		"{a: {type: int, default: \"3\"}}":  "the default is not of type int",
		"{a: {type: list, elements: none}}": `elements "none"`,
		"[a]":                               "a mapping of names",
		"{a: ":                              "argument_specs.yml:4: invalid YAML: ",
	} {
		dir := newProject(t)
		scratch.Write(t, dir, map[string]string{"roles/mysqlcluster/meta/argument_specs.yml": "argument_specs:\n  main:\n    options: " + options + "\n"})
		k := cluster()
		k.GenerateRole = false
		if _, err := CreateAPI(dir, k); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want an error with %q, got %v", options, want, err)
		}
	}
}

func TestShow(t *testing.T) {
	plan, err := CreateAPI(newProject(t), cluster())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	plan.Show(&out)
	if !strings.Contains(out.String(), "edit   watches.yaml\n") || !strings.Contains(out.String(), "create roles/mysqlcluster/tasks/main.yml\n") {
		t.Errorf("got\n%s", out.String())
	}
}

// The status of each resource shows the tag of the image whose content ran last.
func TestTheImageKnowsItsVersion(t *testing.T) {
	dir := newProject(t)
	if !strings.HasSuffix(read(t, dir, "Dockerfile"), "ARG VERSION=dev\nENV OPERATOR_VERSION=${VERSION}\n") {
		t.Errorf("the Dockerfile is\n%s", read(t, dir, "Dockerfile"))
	}
	for image, want := range map[string]string{"registry.example:5000/shop/operator:1.4.0": "1.4.0", "operator:dev": "dev"} {
		cmd := exec.CommandContext(t.Context(), "make", "--dry-run", "docker-build", "IMG="+image)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), " --build-arg VERSION="+want+" ") {
			t.Errorf("%s: want the version %s, got %v\n%s", image, want, err, out)
		}
	}
}

// Go, which some targets call, wants to know where the home directory is.
func TestTheMakefileFindsAHomeDirectory(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "make", "--silent", "--eval=home: ; @echo $$HOME", "home")
	cmd.Dir, cmd.Env = newProject(t), []string{"PATH=" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "/") {
		t.Errorf("got %v, %q", err, out)
	}
}
