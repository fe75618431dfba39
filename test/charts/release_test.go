package charts

import (
	"context"
	"encoding/base64"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/audit"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// configMap is a template of a ConfigMap with a name behind the release's, annotations as
// JSON, and one line of data.
func configMap(name, annotations, line string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-%s\n  annotations: %s\ndata:\n  %s\n", name, annotations, line)
}

// charted returns a site whose operator runs a chart of these templates, with further fields
// of the watch.
func charted(ctx context.Context, templates map[string]string, fields string) *site.Site {
	GinkgoHelper()
	files := map[string]string{
		"watches.yaml":      "- {group: demo.example.com, version: v1, kind: Hello, chart: chart}\n",
		"chart/Chart.yaml":  "apiVersion: v2\nname: plain\nversion: 1.0.0\n",
		"chart/values.yaml": "{}\n",
	}
	if fields != "" {
		files["watches.yaml"] = "- group: demo.example.com\n  version: v1\n  kind: Hello\n  chart: chart\n" + fields
	}
	for name, text := range templates {
		files["chart/templates/"+name] = text
	}
	return newSite(ctx, files)
}

// statuses returns the statuses of a release's revisions by their numbers.
func statuses(s *site.Site, name string) func(context.Context) (map[string]string, error) {
	return func(ctx context.Context) (map[string]string, error) {
		list := &corev1.SecretList{}
		err := k8s.List(ctx, list, client.InNamespace(s.Namespace), client.MatchingLabels{"owner": "helm", "name": name})
		found := map[string]string{}
		for _, secret := range list.Items {
			found[secret.Labels["version"]] = secret.Labels["status"]
		}
		return found, err
	}
}

func objectNamed(s *site.Site, name string, object client.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		return k8s.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, object)
	}
}

// ask makes content run again.
func ask(ctx context.Context, cr *unstructured.Unstructured, value string) {
	GinkgoHelper()
	Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"helm.sdk.operatorframework.io/reconcile-requested-at":"`+value+`"}}}`)))).To(Succeed())
}

// answered makes content look again, and waits until it has.
func answered(ctx context.Context, s *site.Site, cr *unstructured.Unstructured, value string) {
	GinkgoHelper()
	ask(ctx, cr, value)
	Eventually(ctx, func(ctx context.Context) (string, error) {
		err := objectNamed(s, cr.GetName(), cr)(ctx)
		at, _, _ := unstructured.NestedString(cr.Object, "status", "reconcileRequestedAt")
		return at, err
	}).Should(Equal(value))
}

var _ = Describe("a release", func() {
	It("has one revision although its chart draws random text and looks objects up", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", `drawn: {{ randAlphaNum 16 }}{{ len (lookup "v1" "ConfigMap" "" "").items }}`)}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "random", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		made := &corev1.ConfigMap{}
		Expect(objectNamed(s, "random-a", made)(ctx)).To(Succeed())
		version := cr.GetResourceVersion()
		for i := range 10 {
			ask(ctx, cr, fmt.Sprint(i))
		}
		Consistently(ctx, statuses(s, "random"), site.Calm).Should(Equal(map[string]string{"1": "deployed"}))
		again := &corev1.ConfigMap{}
		Expect(objectNamed(s, "random-a", again)(ctx)).To(Succeed())
		Expect(again.ResourceVersion).To(Equal(made.ResourceVersion))
		Expect(cr.GetResourceVersion()).NotTo(Equal(version), "the annotations did change")
		Expect(s.Condition(cr, "Deployed")(ctx)).To(HaveField("Generation", cr.GetGeneration()))
	})

	It("is compared, period after period, without a write", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "drawn: {{ randAlphaNum 16 }}")}, "  reconcilePeriod: 200ms\n  watchDependentResources: false\n").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "resting", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Eventually(ctx, func() ([]audit.Write, error) { return audit.Log{Path: auditLog}.Writes(s.Namespace, "") }).
			Should(ContainElement(HaveField("Resource", "events")), "the Event of the run comes after its status")
		log, err := audit.Open(auditLog)
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func() (int, error) { return log.DryRuns(s.Namespace) }).Should(BeNumerically(">=", 10), "each period compares the one object")
		Expect(log.Writes(s.Namespace, "")).To(BeEmpty())
		Expect(statuses(s, "resting")(ctx)).To(Equal(map[string]string{"1": "deployed"}))
	})

	It("refuses text of a CR that its chart would evaluate, and takes it where the chart would not", func(ctx context.Context) {
		const evil, alert = `{{ print "EXE" "CUTED" }}`, `{{ $labels.instance }} is down`
		templates := map[string]string{"a.yaml": configMap("a", "{}", "a: {{ tpl (.Values.trusted | default \"\") . | quote }}\n  b: {{ tpl (.Values.coded | default \"\" | b64dec) . | quote }}\n  given: {{ tpl (.Values.given | default \"\") . | quote }}\n  shown: {{ .Values.shown | toJson | quote }}")}
		s := charted(ctx, templates, "  templatesInSpec: [spec.trusted]\n").Start(ctx, hello.Kind)
		plain := harness.Custom(hello, s.Namespace, "plain", map[string]any{"given": evil})
		coded := harness.Custom(hello, s.Namespace, "coded", map[string]any{"coded": base64.StdEncoding.EncodeToString([]byte(evil))})
		trusted := harness.Custom(hello, s.Namespace, "trusted", map[string]any{"trusted": evil})
		shown := harness.Custom(hello, s.Namespace, "shown", map[string]any{"shown": []any{alert, map[string]any{evil: evil}}})
		s.Create(ctx, plain, coded, trusted, shown)
		refused := And(HaveField("Reason", "InvalidSpec"), HaveField("Message", HavePrefix("spec.given: ")))
		Expect(s.Outcome(ctx, plain)).To(refused)
		Expect(s.Outcome(ctx, coded)).To(And(HaveField("Reason", "InvalidSpec"), HaveField("Message", ContainSubstring("does not come from the chart"))))
		Expect(s.Condition(coded, "ReleaseFailed")(ctx)).To(HaveField("Reason", "InstallError"))
		Expect(s.Outcome(ctx, trusted)).To(HaveField("Reason", "Successful"))
		Expect(s.Outcome(ctx, shown)).To(HaveField("Reason", "Successful"))
		object := &corev1.ConfigMap{}
		Expect(objectNamed(s, "trusted-a", object)(ctx)).To(Succeed())
		Expect(object.Data).To(HaveKeyWithValue("a", "EXECUTED"))
		Expect(objectNamed(s, "shown-a", object)(ctx)).To(Succeed())
		Expect(object.Data["shown"]).To(MatchJSON(`["{{ $labels.instance }} is down", {"{{ print \"EXE\" \"CUTED\" }}": "{{ print \"EXE\" \"CUTED\" }}"}]`))
		before := object.ResourceVersion
		for _, of := range []string{"plain-a", "coded-a"} {
			Expect(objectNamed(s, of, object)(ctx)).To(site.BeGone())
		}
		Expect(statuses(s, "plain")(ctx)).To(BeEmpty())

		By("no attempt that cannot succeed")
		for _, cr := range []*unstructured.Unstructured{plain, coded} {
			Eventually(s.Log).Should(MatchRegexp(`resource refused; next run after its next change.*"object": "` + s.Namespace + "/" + cr.GetName() + `"`))
			Expect(s.Failed(cr)()).To(Equal(1))
		}
		answered(ctx, s, coded, "try again")
		Eventually(ctx, s.Failed(coded)).Should(Equal(2))

		By("a change of the spec")
		Expect(k8s.Patch(ctx, plain, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"given":"plain"}}`)))).To(Succeed())
		Eventually(ctx, s.Condition(plain, "Successful")).Should(HaveField("Status", "True"))
		Expect(k8s.Patch(ctx, shown, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"given":"{{ $labels.instance }}"}}`)))).To(Succeed())
		Eventually(ctx, s.Condition(shown, "Failure")).Should(refused)
		Expect(objectNamed(s, "shown-a", object)(ctx)).To(Succeed())
		Expect(object.ResourceVersion).To(Equal(before))
		Expect(statuses(s, "shown")(ctx)).To(Equal(map[string]string{"1": "deployed"}))
		text, err := s.Log()
		Expect(err).NotTo(HaveOccurred())
		Expect(text).To(ContainSubstring("WARNING: templatesInSpec has paths"))
	})

	It("evaluates the templates of a chart's own values, however they are written", func(ctx context.Context) {
		s := charted(ctx, map[string]string{
			"names.yaml": `{{ define "plain.name" }}{{ .Release.Name }}-own{{ end }}`,
			"a.yaml": configMap("a", `{checksum: "{{ tpl .Values.checksum . }}"}`, `double: {{ tpl .Values.double . | quote }}
  folded: {{ tpl .Values.folded . | quote }}
  {{ tpl (toYaml .Values.map) . | indent 2 | trim }}
  joined: {{ tpl (printf "{{ include %q . }}" .Values.helper) . }}
  {{ if .Values.show }}hidden: {{ tpl .Values.hidden . }}{{ end }}`),
		}, "").Start(ctx, hello.Kind)
		s.Write(map[string]string{"chart/values.yaml": `double: "{{ include \"plain.name\" . }}"
folded: >-
  {{ include
  "plain.name" . }}
map: {single: 'it''s {{ include "plain.name" . }}'}
checksum: '{{ include (print $.Template.BasePath "/names.yaml") . | sha256sum }}'
helper: plain.name
hidden: '{{ printf "%s" (include "plain.name" .) }}'
`})
		cr := harness.Custom(hello, s.Namespace, "own", map[string]any{"show": true})
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		object := &corev1.ConfigMap{}
		Expect(objectNamed(s, "own-a", object)(ctx)).To(Succeed())
		Expect(object.Data).To(Equal(map[string]string{"double": "own-own", "folded": "own-own", "single": "it's own-own", "joined": "own-own", "hidden": "own-own"}))
		Expect(object.Annotations).To(HaveKeyWithValue("checksum", HaveLen(64)))
	})

	It("has no default of its chart that its CR sets to null, and whole numbers", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "values: {{ toJson .Values | quote }}\n  million: \"{{ .Values.million }}\"")}, "").Start(ctx, hello.Kind)
		s.Write(map[string]string{"chart/values.yaml": "probe: {httpGet: {path: /}, period: 1}\n"})
		cr := harness.Custom(hello, s.Namespace, "nulls", map[string]any{"probe": map[string]any{"httpGet": nil}, "million": int64(1000000)})
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		object := &corev1.ConfigMap{}
		Expect(objectNamed(s, "nulls-a", object)(ctx)).To(Succeed())
		Expect(object.Data).To(Equal(map[string]string{"values": `{"million":1000000,"probe":{"period":1}}`, "million": "1000000"}))
	})

	It("keeps objects of the policy keep, without an owner", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", `{"helm.sh/resource-policy": keep}`, "a: b"), "b.yaml": configMap("b", "{}", "a: b")}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "kept", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		kept, owned := &corev1.ConfigMap{}, &corev1.ConfigMap{}
		Expect(objectNamed(s, "kept-a", kept)(ctx)).To(Succeed())
		Expect(objectNamed(s, "kept-b", owned)(ctx)).To(Succeed())
		Expect(kept.OwnerReferences).To(BeEmpty())
		Expect(owned.OwnerReferences).To(HaveLen(1))
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, objectNamed(s, "kept-b", owned)).Should(site.BeGone())
		Eventually(ctx, objectNamed(s, "kept", cr.DeepCopy())).Should(site.BeGone())
		Consistently(ctx, objectNamed(s, "kept-a", kept), site.Calm).Should(Succeed())
	})

	It("leaves fields alone that others may change", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "mine: a\n  theirs: a")}, "  driftIgnore: [{kind: ConfigMap, pointers: [/data/theirs]}]\n").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "shared", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		change := func(data string) {
			GinkgoHelper()
			object := &corev1.ConfigMap{}
			Expect(objectNamed(s, "shared-a", object)(ctx)).To(Succeed())
			Expect(k8s.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(`{"data":`+data+`}`)))).To(Succeed())
		}
		data := func(ctx context.Context) (map[string]string, error) {
			object := &corev1.ConfigMap{}
			err := objectNamed(s, "shared-a", object)(ctx)
			return object.Data, err
		}
		s.Watched(ctx, "configmaps")
		change(`{"theirs":"b"}`)
		Consistently(ctx, data, site.Calm).Should(HaveKeyWithValue("theirs", "b"))
		change(`{"mine":"b","added":"c"}`)
		Eventually(ctx, data).Should(Equal(map[string]string{"mine": "a", "theirs": "b", "added": "c"}))
	})

	It("that the helm command made is not taken over", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: b")}, "")
		helm(s, "install", "taken", filepath.Join(s.Options.Project, "chart"))
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "taken", nil)
		s.Create(ctx, cr)
		Eventually(ctx, s.Condition(cr, "Irreconcilable")).Should(And(HaveField("Reason", "ReconcileError"), HaveField("Message", ContainSubstring("duplicate release name"))))
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, objectNamed(s, "taken", cr.DeepCopy())).Should(site.BeGone())
		Expect(statuses(s, "taken")(ctx)).To(Equal(map[string]string{"1": "deployed"}))
		Expect(objectNamed(s, "taken-a", &corev1.ConfigMap{})(ctx)).To(Succeed())
	})

	DescribeTable("that the helm command made is taken over with adopt by one revision, with its objects", func(ctx context.Context, spec map[string]any, want string) {
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: {{ .Values.a | default \"b\" }}")}, "  adopt: true\n")
		helm(s, "install", "adopted", filepath.Join(s.Options.Project, "chart"))
		before := &corev1.ConfigMap{}
		Expect(objectNamed(s, "adopted-a", before)(ctx)).To(Succeed())
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "adopted", spec)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		object := &corev1.ConfigMap{}
		Expect(objectNamed(s, "adopted-a", object)(ctx)).To(Succeed())
		Expect(object.UID).To(Equal(before.UID))
		Expect(object.Data).To(Equal(map[string]string{"a": want}))
		answered(ctx, s, cr, "once more")
		Expect(statuses(s, "adopted")(ctx)).To(Equal(map[string]string{"2": "superseded", "3": "deployed"}))
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, objectNamed(s, "adopted", cr.DeepCopy())).Should(site.BeGone())
		Expect(objectNamed(s, "adopted-a", object)(ctx)).To(site.BeGone())
		Eventually(ctx, statuses(s, "adopted")).Should(BeEmpty())
	},
		Entry("with other values", map[string]any{"a": "c"}, "c"),
		// That one gives the release its digest.
		Entry("with the same values", nil, "b"),
	)

	It("is unlocked and installed although its first attempt was killed with its manager", func(ctx context.Context) {
		// The hook's Job waits for ever: nothing runs pods here.
		hook := "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {{ .Release.Name }}-hook\n  annotations: {\"helm.sh/hook\": post-install}\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      nodeName: none\n      containers: [{name: a, image: none}]\n"
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: b"), "hook.yaml": hook}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "killed", nil)
		s.Create(ctx, cr)
		Eventually(ctx, objectNamed(s, "killed-a", &corev1.ConfigMap{})).Should(Succeed())
		Expect(statuses(s, "killed")(ctx)).To(Equal(map[string]string{"1": "pending-install"}))
		Expect(syscall.Kill(s.PID(), syscall.SIGKILL)).To(Succeed())
		Eventually(ctx, s.Manager.Ended()).Should(BeClosed())
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"helm.sdk.operatorframework.io/install-disable-hooks":"true"}}}`)))).To(Succeed())
		s.Start(ctx, hello.Kind)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Expect(statuses(s, "killed")(ctx)).To(Equal(map[string]string{"1": "failed", "2": "deployed"}))
		Eventually(ctx, s.Condition(cr, "Deployed")).Should(HaveField("Reason", "InstallSuccessful"))
		Expect(objectNamed(s, "killed-a", &corev1.ConfigMap{})(ctx)).To(Succeed())
	})
})

// helm runs the helm command in the site's namespace.
func helm(s *site.Site, args ...string) {
	GinkgoHelper()
	command := exec.Command(filepath.Join(ground.Root, "bin", "tools", "helm"), append(args, "--namespace", s.Namespace, "--kubeconfig", s.Options.Kubeconfig)...)
	command.Env = []string{"HOME=" + s.Dir}
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
}
