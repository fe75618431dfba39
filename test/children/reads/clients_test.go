package reads

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/internal/readcache"
)

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: image}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web}}
data: {colour: red}
`

var _ = Describe("An ordinary client", func() {
	It("can be kubectl", func(ctx context.Context) {
		w := open(cluster.Config, readcache.Options{})
		r := w.grant(ctx)
		namespace := space(ctx, "kubectl")
		fill(ctx, namespace, 25)
		kubectl := func(args ...string) string {
			GinkgoHelper()
			return r.program(ctx, deployment, cluster.Kubectl, append([]string{"--namespace", namespace}, args...)...)
		}
		directly := func(args ...string) string {
			GinkgoHelper()
			d := &run{kubeconfig: cluster.Kubeconfig, home: GinkgoT().TempDir()}
			return d.program(ctx, "", cluster.Kubectl, append([]string{"--namespace", namespace}, args...)...)
		}
		for _, args := range [][]string{{"apply", "-f", "-"}, {"apply", "-f", "-"}, {"apply", "--server-side", "--force-conflicts", "-f", "-"}} {
			Expect(kubectl(args...)).To(ContainSubstring("configmap/settings"))
		}
		kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=90s")
		kubectl("scale", "deployment/web", "--replicas=2")
		kubectl("rollout", "status", "deployment/web", "--timeout=90s")
		kubectl("set", "env", "deployment/web", "A=b")
		kubectl("label", "configmap/settings", "extra=yes")
		kubectl("patch", "configmap/settings", "--type=merge", "-p", `{"data":{"colour":"blue"}}`)
		Expect(kubectl("get", "configmap/settings", "-o", "jsonpath={.data.colour}")).To(Equal("blue"))
		Expect(kubectl("get", "deployment/web", "-o", "jsonpath={.spec.replicas}")).To(Equal("2"))
		kubectl("rollout", "status", "deployment/web", "--timeout=90s")

		for _, args := range [][]string{
			{"get", "configmaps", "--chunk-size=5"}, // A Table, in pages.
			{"get", "configmaps", "--chunk-size=5", "-o", "name"},
			{"get", "configmaps", "--chunk-size=0", "-o", "name"}, // The whole list: from memory.
			{"get", "configmaps", "--chunk-size=0", "-o", "name", "-l", "number in (3,4)"},
			{"get", "configmaps", "-o", "name", "--field-selector=metadata.name=one-003"},
			{"get", "configmap", "one-003", "-o", "yaml"},
			{"get", "configmap", "one-003", "-o", "custom-columns=N:.data.number"},
			{"get", "deployment", "web"},
			{"describe", "configmap", "one-003"},
			{"api-resources", "--api-group=apps", "-o", "name"},
			{"get", "configmap", "nobody", "--ignore-not-found"},
		} {
			Eventually(func(g Gomega) {
				g.Expect(withoutAges(kubectl(args...))).To(Equal(withoutAges(directly(args...))), "%v", args)
			}).Should(Succeed())
		}
		r.warm(ctx, "/api/v1/namespaces/kubectl/configmaps")
		before := w.hits()
		Expect(strings.Fields(kubectl("get", "configmaps", "--chunk-size=0", "-o", "name"))).To(HaveLen(27))
		Expect(w.hits()).To(BeNumerically(">", before), "an ordinary list of kubectl comes from memory")

		kubectl("delete", "deployment/web", "configmap/settings", "--wait=true", "--timeout=90s")
		_, err := r.try(ctx, "", cluster.Kubectl, "--namespace", namespace, "get", "configmap", "settings", "-o", "name")
		Expect(err).To(HaveOccurred())
		kubectl("delete", "configmaps", "-l", "app=one", "--wait=true", "--timeout=90s")
		Expect(strings.Fields(kubectl("get", "configmaps", "-o", "name", "--chunk-size=0"))).To(ConsistOf("configmap/kube-root-ca.crt"))
	})

	It("can be the Kubernetes client of Python", func(ctx context.Context) {
		w := open(cluster.Config, readcache.Options{})
		r := w.grant(ctx)
		namespace := space(ctx, "python")
		fill(ctx, namespace, 25)
		r.warm(ctx, "/api/v1/namespaces/python/configmaps")
		script, err := filepath.Abs("testdata/client.py")
		Expect(err).NotTo(HaveOccurred())
		Expect(script).To(BeARegularFile())
		output := r.program(ctx, "", filepath.Join(root, ".venv", "bin", "python"), script, namespace)
		lines := strings.Split(strings.TrimSpace(output), "\n")
		var said map[string]any
		Expect(json.Unmarshal([]byte(lines[len(lines)-1]), &said)).To(Succeed(), output)
		Expect(said).To(Equal(map[string]any{
			"listed": 26.0, "selected": []any{"one-003", "one-004"}, "pages": []any{10.0, 10.0, 6.0}, "rounds": 20.0, "stale": []any{}, "watched": "ADDED", "gone": true,
		}))
		Expect(w.hits()).To(BeNumerically(">", 20))
	})
})

var _ = Describe("Helm", func() {
	It("installs, upgrades, rolls back and uninstalls a release", func(ctx context.Context) {
		w := open(cluster.Config, readcache.Options{})
		r := w.grant(ctx)
		namespace := space(ctx, "helm")
		binary := filepath.Join(root, "bin", "tools", "helm")
		Expect(binary).To(BeARegularFile(), "run these tests by `make test`, which builds what they need")
		chart := newChart()
		helm := func(args ...string) string {
			GinkgoHelper()
			return r.program(ctx, "", binary, append(args, "--namespace", namespace)...)
		}
		colour := func() any { return r.get(ctx, "/api/v1/namespaces/helm/configmaps/settings").body["data"] }
		// Everything that the release consists of is read, and may come from memory.
		for _, path := range []string{"/api/v1/namespaces/helm/configmaps", "/apis/apps/v1/namespaces/helm/deployments", "/api/v1/namespaces/helm/services"} {
			r.warm(ctx, path)
		}
		helm("install", "web", chart, "--wait", "--timeout=90s", "--set", "colour=red")
		Expect(colour()).To(HaveKeyWithValue("colour", "red"))
		helm("upgrade", "web", chart, "--wait", "--timeout=90s", "--set", "colour=blue")
		Expect(colour()).To(HaveKeyWithValue("colour", "blue"))
		helm("upgrade", "web", chart, "--wait", "--timeout=90s", "--set", "colour=blue")
		helm("rollback", "web", "1", "--wait", "--timeout=90s")
		Expect(colour()).To(HaveKeyWithValue("colour", "red"))
		Expect(helm("list", "-q")).To(ContainSubstring("web"))
		Expect(strings.Count(helm("history", "web"), "\n")).To(Equal(5), "a header and four revisions")
		Expect(helm("get", "values", "web")).To(ContainSubstring("colour: red"))
		helm("uninstall", "web", "--wait", "--timeout=90s")
		Expect(namesOf(r.get(ctx, "/api/v1/namespaces/helm/configmaps"))).To(ConsistOf("kube-root-ca.crt"))
		Expect(namesOf(r.get(ctx, "/apis/apps/v1/namespaces/helm/deployments"))).To(BeEmpty())
	})
})

// newChart writes a chart and gives its directory.
func newChart() string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	Expect(os.MkdirAll(filepath.Join(dir, "templates"), 0o755)).To(Succeed())
	for name, content := range map[string]string{
		"Chart.yaml":             "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"values.yaml":            "colour: none\n",
		"templates/objects.yaml": strings.Replace(deployment, "{colour: red}", "{colour: {{ .Values.colour | quote }}}", 1),
		"templates/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n",
	} {
		Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
	}
	return dir
}

// withoutAges leaves out what changes by itself.
func withoutAges(table string) string {
	lines := strings.Split(table, "\n")
	for i, line := range lines {
		if fields := strings.Fields(line); len(fields) > 2 {
			lines[i] = strings.Join(fields[:len(fields)-1], " ")
		}
	}
	return strings.Join(lines, "\n")
}
