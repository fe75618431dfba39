package charts

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

var _ = Describe("a request", func() {
	It("renders the chart again, and upgrades the release if another cluster gives other objects", func(ctx context.Context) {
		const served = `{{ .Capabilities.APIVersions.Has "seen.example.com/v1" }}`
		const found = `{{ dig "data" "a" "none" (lookup "v1" "ConfigMap" .Release.Namespace "source") }}`
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "served: \""+served+"\"\n  found: \""+found+"\"\n  random: {{ randAlphaNum 12 }}\n  revision: \"{{ .Release.Revision }}{{ .Release.IsInstall }}\"")}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "asked", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		made := &corev1.ConfigMap{}
		read := func(ctx context.Context) (map[string]string, error) {
			err := objectNamed(s, "asked-a", made)(ctx)
			return made.Data, err
		}
		Expect(read(ctx)).To(And(HaveKeyWithValue("served", "false"), HaveKeyWithValue("found", "none"), HaveKeyWithValue("revision", "1true")))

		By("a request when nothing has changed")
		first := made.ResourceVersion
		answered(ctx, s, cr, "1")
		Expect(statuses(s, "asked")(ctx)).To(Equal(map[string]string{"1": "deployed"}))
		Expect(read(ctx)).To(HaveKeyWithValue("revision", "1true"))
		Expect(made.ResourceVersion).To(Equal(first))

		By("an object that is looked up")
		s.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "source"}, Data: map[string]string{"a": "here"}})
		answered(ctx, s, cr, "2")
		Expect(statuses(s, "asked")(ctx)).To(Equal(map[string]string{"1": "superseded", "2": "deployed"}))
		Expect(read(ctx)).To(HaveKeyWithValue("found", "here"))

		By("a kind that is served now")
		ground.Define(ctx, harness.Definition(schema.GroupKind{Group: "seen.example.com", Kind: "Seen"}))
		answered(ctx, s, cr, "3")
		Expect(statuses(s, "asked")(ctx)).To(HaveKeyWithValue("3", "deployed"))
		Expect(read(ctx)).To(HaveKeyWithValue("served", "true"))

		By("an object of the release that somebody changes just then")
		Expect(k8s.Patch(ctx, made, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"found":"gone"}}`)))).To(Succeed())
		answered(ctx, s, cr, "4")
		Eventually(ctx, read).Should(HaveKeyWithValue("found", "here"))
		Expect(statuses(s, "asked")(ctx)).To(HaveLen(3))
	})
})
