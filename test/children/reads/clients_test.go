package reads

import (
	"context"
	"encoding/json"
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
