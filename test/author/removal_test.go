package author

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// TestWhatRemovesAProject: make uninstall and make undeploy of a project delete no custom resource,
// whether it has a finalizer or not, unless FORCE=1 is given; and no target changes the cluster of
// ~/.kube/config unless KUBECONFIG names it.
func TestWhatRemovesAProject(t *testing.T) {
	shared := newDesk(t)
	for name, made := range map[string][][]string{
		"role": {{"init", "--domain=role.tld"}, {"create", "api", "--group=shop", "--version=v1", "--kind=Store", "--generate-role", "--finalizer"}},
		"chart": {{"init", "--domain=chart.tld"}, {"create", "api", "--group=shop", "--version=v1", "--kind=Store",
			"--chart=" + filepath.Join(scratch.Repository(t), "examples", "hello", "charts", "hello")}},
		"go": {{"init", "--domain=go.tld", "--go", "--repo=example.com/shop"}, {"create", "api", "--group=shop", "--version=v1", "--kind=Store", "--generate-role", "--finalizer"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := *shared
			d.t, d.dir = t, filepath.Join(filepath.Dir(shared.dir), name)
			d.env = append(slices.Clone(shared.env), "CONTROLLER_GEN=true") // There is nothing in Go to generate from.
			if err := os.Mkdir(d.dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, args := range made {
				d.run(0, d.ensign, args...)
			}
			d.removes(name)
		})
	}
}

func (d *desk) removes(name string) {
	d.t.Helper()
	finalizer := map[string]string{"role": "shop.role.tld/finalizer", "go": "shop.go.tld/finalizer", "chart": "helm.sdk.operatorframework.io/uninstall-release"}[name]
	resource := "stores.shop." + name + ".tld/shop"
	identity := func() string {
		d.t.Helper()
		return d.run(0, "kubectl", "get", resource, "-o", "jsonpath={.metadata.uid} {.metadata.resourceVersion}")
	}
	present := func() bool { return len(d.definitions()) > 0 }
	elsewhere := d.withoutKubeconfig()

	for _, target := range []string{"install", "deploy"} {
		elsewhere.wants(elsewhere.run(2, "make", target), "no cluster is chosen: set KUBECONFIG")
		if present() {
			d.t.Fatalf("make %s used ~/.kube/config", target)
		}
	}
	d.wants(d.run(0, "make", "deploy"), "cluster: https://")
	d.established(d.definitions()...)
	d.run(0, "bash", "-c", "printf '%s\n' 'apiVersion: shop."+name+".tld/v1' 'kind: Store' 'metadata: {name: shop}' 'spec: {}' | kubectl apply -f -")
	for _, held := range []bool{false, true} {
		if held {
			d.run(0, "kubectl", "patch", resource, "--type=merge", "-p", `{"metadata": {"finalizers": ["`+finalizer+`"]}}`)
		}
		before := identity()
		for _, target := range []string{"uninstall", "undeploy"} {
			out := d.run(2, "make", target)
			d.wants(out, "cluster: https://")
			d.wants(out, "nothing was removed: these custom resources exist:\n  Store default/shop")
			d.wants(out, "FORCE=1")
			d.wants(elsewhere.run(2, "make", target), "no cluster is chosen: set KUBECONFIG")
			d.wants(elsewhere.run(2, "make", target, "FORCE=1"), "no cluster is chosen: set KUBECONFIG")
			if after := identity(); after != before {
				d.t.Errorf("make %s has changed the resource from %s to %s", target, before, after)
			}
			d.run(0, "kubectl", "get", "deployment", name+"-manager", "--namespace="+name+"-system")
		}
	}
	out := d.run(0, "make", "undeploy", "FORCE=1")
	d.wants(out, "removed the finalizer "+finalizer+" of the Store default/shop")
	if present() || strings.Contains(d.run(0, "kubectl", "get", "namespaces,clusterroles,clusterrolebindings", "-o", "name"), "/"+name+"-") {
		d.t.Errorf("make undeploy FORCE=1 leaves something:\n%s", out)
	}
	d.run(0, "make", "undeploy") // Nothing is there.
	d.run(0, "make", "install")
	d.run(0, "make", "uninstall")
	if present() {
		d.t.Error("make uninstall leaves the CRD although there is no resource")
	}
}

// withoutKubeconfig returns a desk whose ~/.kube/config names the cluster, without KUBECONFIG, and
// away from a clone that may have a devcluster.
func (d *desk) withoutKubeconfig() *desk {
	d.t.Helper()
	home := d.t.TempDir()
	at := *d
	at.ensign = filepath.Join(home, "bin", "ensign")
	at.env = slices.DeleteFunc(slices.Clone(d.env), func(variable string) bool { return strings.HasPrefix(variable, "KUBECONFIG=") })
	at.env = append(at.env, "HOME="+home, "ENSIGN="+at.ensign)
	d.run(0, "bash", "-c", `mkdir -p "$0/bin" "$0/.kube" && cp "$1" "$0/bin/ensign" && cp "$KUBECONFIG" "$0/.kube/config"`, home, d.ensign)
	return &at
}
