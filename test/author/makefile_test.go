package author

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/onsi/gomega/gbytes"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// project is a fresh project with one kind of content, or with all.
type project struct {
	name, domain string
	kinds        []kind
}

// kind is the resource of a kind, and the flags of create api.
type kind struct {
	resource string
	flags    []string
}

// freshProjects has a project with all kinds of content, and by the tag long one for each alone. Some
// are in groups, or of charts, with which make test and the API server had their difficulties.
func freshProjects(t *testing.T) []project {
	t.Helper()
	charts := filepath.Join(scratch.Short(t), "charts")
	scratch.Write(t, charts, map[string]string{
		"odd/Chart.yaml":         "apiVersion: v2\nname: odd\nversion: 0.1.0\n",
		"odd/values.yaml":        "#a comment that goes on " + strings.Repeat("and on ", 20) + "\nfast:    yes\nmode: 0755\nlist:\n- a\n",
		"odd/values.schema.json": `{"type": "object", "required": ["host"], "properties": {"host": {"type": "string"}, "fast": {"type": "boolean"}}}`,
		"odd/templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n   name: {{ .Release.Name }}\ndata:\n  {{- with .Values.host }}\n   host: {{ . }}\n  {{- end }}\n",
		"odd/crds/thing.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.odd.example.com}\nspec:\n  group: odd.example.com\n  scope: Namespaced\n" +
			"  names: {kind: Thing, plural: things}\n  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]\n",
	})
	hello := filepath.Join(scratch.Repository(t), "examples", "hello", "charts", "hello")
	together := project{"all", "myorg.k8s.io", []kind{
		{"store", []string{"--kind=Store", "--generate-role", "--finalizer"}},
		{"region", []string{"--kind=Region", "--generate-role", "--namespaced=false"}},
		{"pricelist", []string{"--kind=PriceList", "--generate-playbook"}},
		{"hello", []string{"--kind=Hello", "--chart=" + hello}},
		{"odd", []string{"--kind=Odd", "--chart=" + filepath.Join(charts, "odd")}},
	}}
	if !alone {
		return []project{together}
	}
	return []project{
		{"role", "myorg.tld", []kind{{"store", []string{"--kind=Store", "--generate-role", "--finalizer"}}}},
		{"playbook", "myorg.k8s.io", []kind{{"pricelist", []string{"--kind=PriceList", "--generate-playbook", "--finalizer"}}}},
		{"chart", "myorg.tld", []kind{{"odd", []string{"--kind=Odd", "--chart=" + filepath.Join(charts, "odd")}}}},
		together,
	}
}

// write writes the project into a directory of its own.
func (p project) write(d *desk) *desk {
	d.t.Helper()
	at := *d
	at.dir = filepath.Join(filepath.Dir(d.dir), p.name)
	if err := os.Mkdir(at.dir, 0o700); err != nil {
		d.t.Fatal(err)
	}
	at.run(0, at.ensign, "init", "--domain", p.domain)
	for _, k := range p.kinds {
		at.run(0, at.ensign, append([]string{"create", "api", "--group=shop", "--version=v1"}, k.flags...)...)
	}
	return &at
}

var target = regexp.MustCompile(`(?m)^([a-z-]+):.* ## `)

// TestEveryTargetOfTheMakefile runs what init writes, for each kind of content. lint and test have a
// longer test of their own. Images are built and pushed by a program that only notes what it is asked
// for: whether the Dockerfile builds is for the tests of the base image; here it is whether what it
// copies is there and not ignored.
func TestEveryTargetOfTheMakefile(t *testing.T) {
	shared := newDesk(t)
	shared.fakeDocker()
	for _, p := range freshProjects(t) {
		t.Run(p.name, func(t *testing.T) {
			shared := *shared
			shared.t = t
			d := p.write(&shared)
			targets := map[string]func(){
				"help":         func() { d.wants(d.run(0, "make"), "make docker-build") },
				"check":        func() { d.wants(d.run(0, "make", "check"), "0 errors, 0 warnings") },
				"run":          func() { d.runsHere(p) },
				"docker-build": d.buildsTheImage,
				"docker-push": func() {
					d.run(0, "make", "docker-push", "IMG=registry.example/shop:1")
					d.wants(d.dockerSaw(), "push registry.example/shop:1\n")
				},
				"deploy": func() { d.deploys(p) },
				"build-installer": func() {
					d.run(0, "make", "build-installer", "IMG=registry.example/shop:1")
					d.wants(d.run(0, "kubectl", "apply", "--dry-run=client", "-f", "dist/install.yaml"), "deployment.apps/"+p.name+"-manager created (dry run)")
					d.wants(d.run(0, "cat", "dist/install.yaml"), "image: registry.example/shop:1\n")
					d.wants(d.run(2, "make", "build-installer", "OVERLAY=nowhere"), "there is no config/overlays/nowhere. There are: jobs")
				},
				"bundle":    func() { d.bundles(p.name) },
				"undeploy":  func() {}, // With deploy.
				"install":   func() {}, // With uninstall.
				"uninstall": func() { d.installsAndUninstalls(p) },
				"lint": func() { // The rest is in TestAFreshProjectPassesItsOwnTests.
					d.wants(d.run(2, "make", "lint", "PATH=/usr/bin:/bin"), "yamllint or ansible-lint is missing: put .venv/bin")
				},
				"test": func() {},
			}
			text, err := os.ReadFile(filepath.Join(d.dir, "Makefile"))
			if err != nil {
				t.Fatal(err)
			}
			d.rightsFit()
			d.lintsTheWorkflow()
			for _, found := range target.FindAllStringSubmatch(string(text), -1) {
				run := targets[found[1]]
				if run == nil {
					t.Errorf("make %s has no test", found[1])
					continue
				}
				run()
			}
		})
	}
}

// bundles makes the bundle, which passes the validation of this repository's own.
func (d *desk) bundles(name string) {
	d.t.Helper()
	d.wants(d.run(0, "make", "bundle", "IMG=registry.example/shop:1.2.3"), "wrote dist/bundle\n")
	d.wants(d.run(0, "go", "-C", filepath.Join(scratch.Repository(d.t), "hack", "bundle"), "run", ".", "-out", filepath.Join(d.dir, "dist"), "validate"), "")
	made := d.run(0, "cat", "dist/bundle/manifests/clusterserviceversion."+name+".v1.2.3.yaml", "dist/bundle/metadata/annotations.yaml")
	for _, part := range []string{"image: registry.example/shop:1.2.3\n", "fieldPath: metadata.annotations['olm.targetNamespaces']\n", "serviceAccountName: " + name + "-manager\n", "-sample", "package.v1: " + name + "\n"} {
		d.wants(made, part)
	}
	d.wants(d.run(2, "make", "bundle", "IMG=registry.example/shop:latest"), `the version "latest": write one such as 1.2.3`)
}

// lintsTheWorkflow has actionlint read the workflow, without what this machine happens to have.
func (d *desk) lintsTheWorkflow() {
	d.t.Helper()
	root := scratch.Repository(d.t)
	d.run(0, filepath.Join(root, "hack", "tools", "build.sh"), "actionlint")
	d.run(0, filepath.Join(root, "bin", "tools", "actionlint"), "-shellcheck=", "-pyflakes=", ".github/workflows/test.yml")
}

// rightsFit compares what rbac prints and writes with what init and create api have written.
func (d *desk) rightsFit() {
	d.t.Helper()
	if out := d.run(0, "bash", "-c", d.ensign+" rbac --diff config/rbac 2>notes || { cat notes; exit 3; }"); out != "" {
		d.t.Errorf("rbac --diff: %s", out)
	}
	role := filepath.Join(d.dir, "config", "rbac", "role.yaml")
	before, err := os.ReadFile(role)
	if err != nil {
		d.t.Fatal(err)
	}
	d.run(0, d.ensign, "rbac", "--write")
	d.wants(d.run(0, d.ensign, "rbac", "--write"), "config/rbac is up to date")
	// As somebody who reads no further would do it: the shell empties the file first.
	d.run(0, "bash", "-c", d.ensign+" rbac 2>notes >config/rbac/role.yaml")
	d.run(0, "bash", "-c", "kubectl kustomize config/default | kubectl apply --dry-run=client -f -")
	if out := d.run(0, "bash", "-c", d.ensign+" rbac --diff config/rbac 2>notes || { cat notes; exit 3; }"); out != "" {
		d.t.Errorf("rbac --diff, after what rbac prints was put in place: %s", out)
	}
	if err := os.WriteFile(role, before, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// fakeDocker puts a program before docker that notes its arguments.
func (d *desk) fakeDocker() {
	d.t.Helper()
	bin := filepath.Join(filepath.Dir(d.dir), "bin")
	scratch.Write(d.t, bin, map[string]string{"docker": "#!/bin/sh\necho \"$@\" >>docker.log\n"})
	if err := os.Chmod(filepath.Join(bin, "docker"), 0o700); err != nil {
		d.t.Fatal(err)
	}
	for i, variable := range d.env {
		if rest, isPath := strings.CutPrefix(variable, "PATH="); isPath {
			d.env[i] = "PATH=" + bin + ":" + rest
		}
	}
}

func (d *desk) dockerSaw() string {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, "docker.log"))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

// buildsTheImage looks whether the build would find what the Dockerfile copies.
func (d *desk) buildsTheImage() {
	d.t.Helper()
	d.run(0, "make", "docker-build", "IMG=registry.example/shop:1", "BASE_IMG=base:2")
	d.wants(d.dockerSaw(), "build --build-arg BASE_IMG=base:2 --build-arg VERSION=1 -t registry.example/shop:1 .\n")
	read := func(name string) []string {
		text, err := os.ReadFile(filepath.Join(d.dir, name))
		if err != nil {
			d.t.Fatal(err)
		}
		return strings.Split(string(text), "\n")
	}
	taken := read(".dockerignore")
	for _, line := range read("Dockerfile") {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != "COPY" {
			continue
		}
		source := path.Clean(words[1])
		if _, err := os.Stat(filepath.Join(d.dir, source)); err != nil || !slices.Contains(taken, "!"+source) {
			d.t.Errorf("%s: it is ignored, or not there: %v", line, err)
		}
	}
	for _, line := range read("watches.yaml") { // The content that the operator runs is in the image.
		for _, key := range []string{"playbook: ", "chart: "} {
			if _, value, found := strings.Cut(line, key); found && !slices.Contains(taken, "!"+strings.Split(value, "/")[0]) {
				d.t.Errorf("%s is not in the image", value)
			}
		}
	}
}

// installsAndUninstalls also tries it while an object needs the operator.
func (d *desk) installsAndUninstalls(p project) {
	d.t.Helper()
	d.run(0, "make", "install")
	d.run(0, "kubectl", "apply", "--dry-run=server", "-k", "config/samples")
	if strings.Contains(strings.Join(p.kinds[0].flags, " "), "--finalizer") {
		d.run(0, "kubectl", "apply", "-k", "config/samples")
		name := p.kinds[0].resource + "/" + p.kinds[0].resource + "-sample"
		d.run(0, "kubectl", "patch", name, "--type=merge", "-p", fmt.Sprintf(`{"metadata": {"finalizers": ["shop.%s/finalizer"]}}`, p.domain))
		d.wants(d.run(2, "make", "uninstall"), p.kinds[0].resource+"-sample")
		d.run(0, "kubectl", "patch", name, "--type=merge", "-p", `{"metadata": {"finalizers": []}}`)
		d.run(0, "kubectl", "delete", "-k", "config/samples", late)
	}
	d.run(0, "make", "uninstall")
	if left := d.definitions(); len(left) > 0 {
		d.t.Errorf("make uninstall leaves %q", left)
	}
}

// definitions returns those of the project that the cluster has.
func (d *desk) definitions() (found []string) {
	d.t.Helper()
	for name := range strings.FieldsSeq(d.run(0, "kubectl", "get", "crd", "-o", "name")) {
		if strings.Contains(name, ".shop.") {
			found = append(found, name)
		}
	}
	return found
}

// runsHere runs the operator by make run.
func (d *desk) runsHere(p project) {
	d.t.Helper()
	operator, log := d.start("make", "run")
	for _, k := range p.kinds {
		d.waits(func() bool { return strings.Contains(d.run(0, "kubectl", "api-resources", "-o", "name"), k.resource) })
	}
	d.reconciles(p, operator, log)
}

// reconciles has a running operator reconcile and delete a sample of each kind, and ends it.
func (d *desk) reconciles(p project, operator *exec.Cmd, log *gbytes.Buffer) {
	d.t.Helper()
	d.established(d.definitions()...)
	d.run(0, "kubectl", "apply", "-k", "config/samples")
	for _, k := range p.kinds {
		d.run(0, "kubectl", "wait", "--for=condition=Successful", k.resource+"/"+k.resource+"-sample", late)
	}
	d.run(0, "kubectl", "delete", "-k", "config/samples", late)
	if err := syscall.Kill(-operator.Process.Pid, syscall.SIGINT); err != nil {
		d.t.Fatal(err)
	}
	if err := operator.Wait(); err != nil && !strings.Contains(string(log.Contents()), "stopping") {
		d.t.Errorf("the operator ends by %v:\n%s", err, log.Contents())
	}
}

// waits waits until a condition holds.
func (d *desk) waits(holds func() bool) {
	d.t.Helper()
	scratch.Eventually(d.t, "the cluster", holds)
}

// deploys installs everything, compares it with the project, and removes it. No image is there to run,
// so that the cluster only plays the pod: the operator runs here, with the account of the Deployment.
func (d *desk) deploys(p project) {
	d.t.Helper()
	d.run(0, "make", "deploy", "IMG=registry.example/shop:1")
	namespace, account := p.name+"-system", p.name+"-manager"
	d.run(0, "kubectl", "wait", "--for=condition=Available", "deployment/"+account, "--namespace="+namespace, late)
	if image := d.run(0, "kubectl", "get", "deployment", account, "--namespace="+namespace, "-o", "jsonpath={.spec.template.spec.containers[0].image}"); image != "registry.example/shop:1" {
		d.t.Errorf("the image is %q", image)
	}
	d.established(d.definitions()...)
	d.wants(d.run(0, d.ensign, "check", "--cluster", "--as", "system:serviceaccount:"+namespace+":"+account), "0 errors, 0 warnings")
	operator, log := d.start(filepath.Join(filepath.Dir(d.ensign), "manager"), "run", "--kubeconfig="+d.account(namespace, account), "--metrics-bind-address=0", "--health-probe-bind-address=0", "--user-metrics-bind-address=0")
	d.reconciles(p, operator, log)
	d.run(0, "make", "undeploy")
	d.run(1, "kubectl", "get", "namespace", namespace)
}
