package charts

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/scratch"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// umbrella writes a chart that has a CR of Hello, and returns a function that upgrades its release with a spec, waits
// as Helm does, and returns what Helm prints.
func umbrella(s *site.Site) func(ctx context.Context, spec string) (string, error) {
	GinkgoHelper()
	home := GinkgoT().TempDir()
	scratch.Write(GinkgoTB(), filepath.Join(home, "chart"), map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: umbrella\nversion: 1.0.0\n", "values.yaml": "spec: {}\n",
		"templates/cr.yaml": "apiVersion: demo.example.com/v1\nkind: Hello\nmetadata: {name: within}\nspec: {{ toJson .Values.spec }}\n",
	})
	return func(ctx context.Context, spec string) (string, error) {
		helm := exec.CommandContext(ctx, filepath.Join(ground.Root, "bin", "tools", "helm"), "upgrade", "--install", "umbrella", filepath.Join(home, "chart"),
			"--namespace="+s.Namespace, "--reset-values", "--set-json=spec="+spec, "--wait", "--timeout=2m")
		helm.Env = append(os.Environ(), "KUBECONFIG="+ground.Cluster.Kubeconfig, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
		output, err := helm.CombinedOutput()
		return string(output), err
	}
}

// The wait of Helm 4 reads Ready, Reconciling and Stalled.
var _ = Describe("helm upgrade --wait of a chart with a CR", func() {
	It("waits for the run and the children, and ends early when the spec is refused", func(ctx context.Context) {
		s := charted(ctx, map[string]string{
			"d.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: {{ .Release.Name }}}\nspec:\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: c, image: {{ tpl .Values.image $ }}}]}\n",
		}, "  health: true\n").Start(ctx, hello.Kind)
		upgrade := umbrella(s)
		cr := harness.Custom(hello, s.Namespace, "within", nil)
		for _, image := range []string{"one", "two"} { // The first one is an installation.
			output, err := upgrade(ctx, `{"image":"`+image+`"}`)
			Expect(err).NotTo(HaveOccurred(), output)
			ready, err := s.Condition(cr, "Ready")(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(ready.Status).To(Equal("True"))
			Expect(ready.Generation).To(BeEquivalentTo(map[string]int{"one": 1, "two": 2}[image]))
		}

		began := time.Now()
		output, err := upgrade(ctx, `{"image":"{{ .Release.Name }}"}`)
		Expect(err).To(HaveOccurred())
		Expect(output).To(And(ContainSubstring("Hello/"+s.Namespace+"/within not ready. status: Failed"), ContainSubstring("spec.image")))
		Expect(time.Since(began)).To(BeNumerically("<", time.Minute))
	})
})
