package author

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// newGoDesk returns a desk without a cluster, on which kubebuilder and controller-gen lie.
func newGoDesk(t *testing.T) *desk {
	t.Helper()
	root := scratch.Repository(t)
	d := &desk{t: t, dir: filepath.Join(t.TempDir(), "shop"), ensign: filepath.Join(root, "bin", "ensign")}
	path := strings.Join([]string{filepath.Join(root, "bin", "tools"), filepath.Join(root, "bin", "controlplane"), os.Getenv("PATH")}, ":")
	d.env = append(os.Environ(), "PATH="+path, "ENSIGN="+d.ensign, "CONTROLLER_GEN=controller-gen", "CGO_ENABLED=0")
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestKubebuilderAddsKindsToAProjectInGo: it and create api share a project, whichever comes first, and
// what controller-gen generates takes nothing away of what content needs.
func TestKubebuilderAddsKindsToAProjectInGo(t *testing.T) {
	d := newGoDesk(t)
	hello := filepath.Join(scratch.Repository(t), "examples", "hello", "charts", "hello")
	inGo := func(kind string) {
		t.Helper()
		d.run(0, filepath.Join(scratch.Repository(t), "bin", "tools", "kubebuilder"), "create", "api", "--group=shop", "--version=v1", "--kind="+kind, "--resource", "--controller", "--make=false")
	}
	ours := func(flags ...string) {
		t.Helper()
		d.run(0, d.ensign, append([]string{"create", "api", "--group=shop", "--version=v1"}, flags...)...)
	}
	d.run(0, d.ensign, "init", "--domain=myorg.tld", "--go", "--repo=example.com/shop")
	d.run(0, "go", "mod", "tidy")
	d.lintsTheWorkflow()
	ours("--kind=Store", "--generate-role", "--finalizer")
	inGo("Till")
	ours("--kind=Hello", "--chart="+hello)
	inGo("Shelf")
	d.bundles("shop")
	out := d.run(0, filepath.Join(scratch.Repository(t), "bin", "tools", "kubebuilder"), "create", "webhook", "--group=shop", "--version=v1", "--kind=Till", "--defaulting", "--programmatic-validation", "--make=false")
	if strings.Contains(out, "unable to find") || strings.Contains(out, "Unable to find") {
		t.Errorf("kubebuilder misses what it edits for a webhook: %s", out)
	}
	d.run(0, "make", "generate", "manifests")
	d.run(0, "go", "build", "./...")
	d.run(0, "go", "mod", "tidy", "-diff")
	d.wants(d.run(1, d.ensign, "check"), "config/samples/shop_v1_till.yaml:8:1: error: spec: Required value") // As kubebuilder writes it.
	d.run(0, "sed", "-i", "s/^spec:$/spec: {}/", "config/samples/shop_v1_till.yaml", "config/samples/shop_v1_shelf.yaml")
	d.wants(d.run(0, d.ensign, "check"), "0 errors, 0 warnings")
	if out := d.run(0, "bash", "-c", d.ensign+" rbac --diff config/rbac 2>notes || { cat notes; exit 3; }"); out != "" {
		t.Errorf("rbac --diff: %s", out)
	}
	for _, path := range []string{"config/default", "config/samples"} {
		text := d.run(0, "kubectl", "kustomize", path)
		for _, kind := range []string{"store", "till", "hello", "shelf"} {
			d.wants(strings.ToLower(text), "name: "+map[string]string{"config/default": "shop-" + kind + "-admin", "config/samples": kind + "-sample"}[path])
		}
	}
	deployed := d.run(0, "kubectl", "kustomize", "config/default")
	if got := strings.Count(deployed, "cert-manager.io/inject-ca-from: shop-system/shop-serving-cert\n"); got != 2 {
		t.Errorf("want both webhooks to get the certificate's authority, got %d", got)
	}
	for _, part := range []string{ // The webhooks, the certificate and the pods find each other.
		"  - shop-webhook-service.shop-system.svc\n", "--webhook-cert-path=/tmp/k8s-webhook-server/serving-certs",
		"      labels:\n        app.kubernetes.io/component: manager\n        app.kubernetes.io/name: shop\n        control-plane: controller-manager\n",
		"  selector:\n    app.kubernetes.io/name: shop\n    control-plane: controller-manager\n",
	} {
		d.wants(deployed, part)
	}
	generated, err := os.ReadFile(filepath.Join(d.dir, "config", "rbac", "go_role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	d.wants(string(generated), "  - tills\n")
	d.run(0, "make", "generate", "manifests")
	d.wants(d.run(0, d.ensign, "rbac", "--write"), "config/rbac is up to date")
}

// TestTheExampleIsGenerated: what controller-gen and rbac --write make of examples/hybrid is what stands
// there.
func TestTheExampleIsGenerated(t *testing.T) {
	d, example := newGoDesk(t), filepath.Join(scratch.Repository(t), "examples", "hybrid")
	copied := filepath.Join(d.dir, "hybrid")
	if err := os.CopyFS(copied, os.DirFS(example)); err != nil {
		t.Fatal(err)
	}
	d.dir = copied
	d.run(0, "go", "mod", "edit", "-replace=github.com/ensign-operator/ensign="+scratch.Repository(t))
	d.run(0, "make", "generate", "manifests")
	d.wants(d.run(0, d.ensign, "check"), "0 errors, 0 warnings")
	if out := d.run(0, d.ensign, "rbac", "--diff", "config/rbac"); strings.Contains(out, "\n+") || strings.Contains(out, "\n-") {
		t.Errorf("rbac --diff: %s", out)
	}
	for _, dir := range []string{"api", "config"} {
		d.run(0, "diff", "-r", "--exclude=certs", filepath.Join(example, dir), filepath.Join(copied, dir))
	}
}
