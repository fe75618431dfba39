package charts

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("a release whose operator is gone", Label("long"), func() {
	DescribeTable("is one as any other to the helm command, and to the operator when it is back", func(ctx context.Context, fields string, flags ...string) {
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: {{ .Values.a | quote }}\n  {{- if .Values.legacy }}\n  legacy: b\n  {{- end }}")}, fields).Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "back", map[string]any{"a": "b", "legacy": true})
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Expect(s.Manager.Stop()).To(Succeed())
		made := &corev1.ConfigMap{}
		Expect(objectNamed(s, "back-a", made)(ctx)).To(Succeed())
		before := made.UID

		var listed []map[string]any
		Expect(json.Unmarshal(helmSays(s, "list", "-o", "json"), &listed)).To(Succeed())
		Expect(listed).To(ConsistOf(And(HaveKeyWithValue("name", "back"), HaveKeyWithValue("status", "deployed"), HaveKeyWithValue("chart", "plain-1.0.0"), HaveKeyWithValue("revision", "1"))))
		chart := filepath.Join(s.Options.Project, "chart")
		data := func(want map[string]string) {
			GinkgoHelper()
			Expect(objectNamed(s, "back-a", made)(ctx)).To(Succeed())
			Expect(made.UID).To(Equal(before))
			Expect(made.Data).To(Equal(want))
		}
		helm(s, append([]string{"upgrade", "back", chart, "--set", "a=c"}, flags...)...)
		data(map[string]string{"a": "c"})
		helm(s, append([]string{"rollback", "back", "1"}, flags...)...)
		data(map[string]string{"a": "b", "legacy": "b"})
		helm(s, append([]string{"upgrade", "back", chart, "--set", "a=d"}, flags...)...)
		data(map[string]string{"a": "d"})

		By("the operator, which puts it back")
		s.Start(ctx, hello.Kind)
		Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
			err := objectNamed(s, "back-a", made)(ctx)
			return made.Data, err
		}).Should(Equal(map[string]string{"a": "b", "legacy": "b"}))
		succeeded(ctx, s, cr)
		data(map[string]string{"a": "b", "legacy": "b"})
		Expect(made.OwnerReferences).To(ConsistOf(HaveField("UID", cr.GetUID())), "it is the resource's again")

		By("its end by the helm command")
		Expect(s.Manager.Stop()).To(Succeed())
		helm(s, "uninstall", "back")
		Expect(objectNamed(s, "back-a", made)(ctx)).To(site.BeGone())
		Expect(statuses(s, "back")(ctx)).To(BeEmpty())
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
	},
		Entry("which applies as Helm 4 does", ""),
		Entry("which applies as Helm 3 and operator-sdk's Helm operator do", "", "--server-side=false"),
		Entry("where the client applies", "  apply: client\n", "--server-side=false"),
	)
})

// helmSays runs the helm command in the site's namespace, and returns what it prints.
func helmSays(s *site.Site, args ...string) []byte {
	GinkgoHelper()
	command := exec.Command(filepath.Join(ground.Root, "bin", "tools", "helm"), append(args, "--namespace", s.Namespace, "--kubeconfig", s.Options.Kubeconfig)...)
	command.Env = []string{"HOME=" + s.Dir}
	out, err := command.Output()
	Expect(err).NotTo(HaveOccurred())
	return out
}
