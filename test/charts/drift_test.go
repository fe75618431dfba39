package charts

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/audit"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("a release whose objects others change", func() {
	const warning = "WARNING: drift detected, not repaired"

	DescribeTable("leaves them so where its watch says that", func(ctx context.Context, drift string, looks bool) {
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: b")}, "  health: true\n  statusFrom: {shown: {from: \"ConfigMap/{name}-a\", path: .data.a}}\n  drift: "+drift+"\n").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "changed", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		s.Watched(ctx, "configmaps")
		object := &corev1.ConfigMap{}
		Expect(objectNamed(s, "changed-a", object)(ctx)).To(Succeed())
		Expect(k8s.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"theirs"}}`)))).To(Succeed())
		changed := object.ResourceVersion
		log, err := audit.Open(auditLog)
		Expect(err).NotTo(HaveOccurred())
		answered(ctx, s, cr, "after the change")
		Expect(objectNamed(s, "changed-a", object)(ctx)).To(Succeed())
		Expect(object.ResourceVersion).To(Equal(changed))
		Expect(s.Condition(cr, "Successful")(ctx)).To(HaveField("Status", "True"))
		Eventually(ctx, func(ctx context.Context) (any, error) {
			err := k8s.Get(ctx, client.ObjectKeyFromObject(cr), cr)
			shown, _, _ := unstructured.NestedString(cr.Object, "status", "shown")
			return shown, err
		}).Should(Equal("theirs"))
		Expect(statuses(s, "changed")(ctx)).To(Equal(map[string]string{"1": "deployed"}))
		text, err := s.Log()
		Expect(err).NotTo(HaveOccurred())
		compared, err := log.DryRuns(s.Namespace)
		Expect(err).NotTo(HaveOccurred())
		if looks {
			Expect(text).To(MatchRegexp(warning + `.*"release": "changed", "objects": "ConfigMap [^"]*changed-a \(/data/a\)"`))
			Expect(compared).To(BeNumerically(">=", 1))
			Eventually(ctx, notes(cr, "Drifted")).Should(HaveExactElements("ConfigMap " + s.Namespace + "/changed-a (/data/a)"))
			answered(ctx, s, cr, "once more")
			text, err = s.Log()
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.Count(text, warning)).To(Equal(1), "a drift is told of once")
			object.ResourceVersion = ""
			Expect(k8s.Delete(ctx, object)).To(Succeed())
			Eventually(ctx, s.Condition(cr, "Ready")).Should(And(HaveField("Status", "False"), HaveField("Message", "ConfigMap "+s.Namespace+"/changed-a: not found")))
			object.UID = ""
			Expect(k8s.Create(ctx, object)).To(Succeed())
			Eventually(ctx, s.Condition(cr, "Ready")).Should(HaveField("Status", "True"))
		} else {
			Expect(text).NotTo(ContainSubstring(warning))
			Expect(compared).To(BeZero())
		}
	},
		Entry("warn: and says so", "warn", true),
		Entry("off: without a look at them", "off", false),
	)

	// The look reads one object after another, so that a change may come behind it.
	It("are all repaired if they change while the release is compared", func(ctx context.Context) {
		const count = 60
		s := charted(ctx, map[string]string{"many.yaml": fmt.Sprintf("{{ range $i := until %d }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ $.Release.Name }}-{{ $i }}'}\ndata: {a: b}\n{{ end }}", count)},
			"  reconcilePeriod: 1h\n").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "many", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		s.Watched(ctx, "configmaps")
		changed := []int{count - 1, 0, 1, 2, 3, 4, 5, 6, 7}
		for range 3 {
			for _, i := range changed {
				object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: fmt.Sprintf("many-%d", i)}}
				patch(ctx, object, `{"data":{"a":"theirs"}}`)
			}
			for _, i := range changed {
				object := &corev1.ConfigMap{}
				Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
					err := objectNamed(s, fmt.Sprintf("many-%d", i), object)(ctx)
					return object.Data, err
				}).Should(HaveKeyWithValue("a", "b"))
			}
		}
	})

	Describe("and that repairs them", Ordered, func() {
		var (
			s  *site.Site
			cr *unstructured.Unstructured
		)

		BeforeAll(func(ctx context.Context) {
			s = charted(ctx, map[string]string{
				"a.yaml": configMap("a", "{}", `a: {{ .Values.a }}`), "b.yaml": configMap("b", "{}", "b: c"),
				"secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Release.Name }}-a'}\nstringData: {password: sesame, other: one}\n",
				"web.yaml":    web,
				"once.yaml":   "apiVersion: batch/v1\nkind: Job\nmetadata: {name: '{{ .Release.Name }}-once'}\nspec: {suspend: true, ttlSecondsAfterFinished: 600, template: {spec: {restartPolicy: Never, containers: [{name: main, image: none}]}}}\n",
			}, `  driftIgnore:
  - {kind: Deployment, group: apps, pointers: [/spec/replicas, /spec/template/spec/containers/name=two/image, /spec/nothing~1like/this]}
  - {kind: StatefulSet, pointers: [/spec/replicas]}
`)
			s.Write(map[string]string{"chart/values.yaml": "a: b\nreplicas: 1\n"})
			s.Start(ctx, hello.Kind)
			cr = harness.Custom(hello, s.Namespace, "fixed", nil)
			s.Create(ctx, cr)
			Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
			s.Watched(ctx, "configmaps", "secrets", "deployments.apps")
		})

		change := func(ctx context.Context, object client.Object, name, patch string) {
			GinkgoHelper()
			Expect(objectNamed(s, name, object)(ctx)).To(Succeed())
			Expect(k8s.Patch(ctx, object, client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.FieldOwner("somebody"))).To(Succeed())
		}

		It("says which fields of which objects it repairs, and no value of them", func(ctx context.Context) {
			secret := &corev1.Secret{}
			change(ctx, secret, "fixed-a", `{"data":{"password":"aGlkZGVu"}}`)
			Eventually(ctx, func(ctx context.Context) (string, error) {
				err := objectNamed(s, "fixed-a", secret)(ctx)
				return string(secret.Data["password"]), err
			}).Should(Equal("sesame"))
			Eventually(ctx, notes(cr, "Repaired")).Should(ContainElement(MatchRegexp("Secret " + s.Namespace + `/fixed-a \(/data/password\)`)))
			text, err := s.Log()
			Expect(err).NotTo(HaveOccurred())
			Expect(text).To(MatchRegexp(`Repaired release.*"objects": "Secret [^"]*fixed-a \(/data/password\)"`))
			Expect(text).NotTo(Or(ContainSubstring("sesame"), ContainSubstring("hidden"), ContainSubstring("aGlkZGVu")))
		})

		It("leaves the owner that the API proxy sets on each object", func(ctx context.Context) {
			object := &corev1.ConfigMap{}
			change(ctx, object, "fixed-a", `{"data":{"a":"theirs"},"metadata":{"labels":{"helm.sdk.operatorframework.io/chart":null}}}`)
			Eventually(ctx, func(ctx context.Context) (*corev1.ConfigMap, error) {
				err := objectNamed(s, "fixed-a", object)(ctx)
				return object, err
			}).Should(And(HaveField("Data", HaveKeyWithValue("a", "b")), HaveField("OwnerReferences", ContainElement(HaveField("UID", cr.GetUID()))),
				HaveField("Labels", HaveKeyWithValue("helm.sdk.operatorframework.io/chart", "plain-1.0.0"))))
		})

		It("leaves the fields of driftIgnore through a list, also in an upgrade, unless the chart changes them", func(ctx context.Context) {
			deployment := &appsv1.Deployment{}
			theirs := And(HaveField("Spec.Replicas", HaveValue(BeEquivalentTo(4))), HaveField("Spec.Template.Spec.Containers", ConsistOf(HaveField("Image", "one:1"), HaveField("Image", "two:theirs"))))
			read := func(ctx context.Context) (*appsv1.Deployment, error) {
				err := objectNamed(s, "fixed-web", deployment)(ctx)
				return deployment, err
			}
			change(ctx, deployment, "fixed-web", `{"spec":{"replicas":4,"template":{"spec":{"containers":[{"name":"one","image":"one:theirs"},{"name":"two","image":"two:theirs"}]}}}}`)
			Eventually(ctx, read).Should(theirs)
			Eventually(ctx, notes(cr, "Repaired")).Should(ContainElement(ContainSubstring("/spec/template/spec/containers/name=one/image)")))
			Expect(k8s.Patch(ctx, cr, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"a":"c"}}`)))).To(Succeed())
			Eventually(ctx, s.Condition(cr, "Deployed")).Should(HaveField("Reason", "UpgradeSuccessful"))
			Expect(read(ctx)).To(And(theirs, HaveField("Annotations", HaveKeyWithValue("a", "c"))))
			Expect(k8s.Patch(ctx, cr, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":2}}`)))).To(Succeed())
			Eventually(ctx, read).Should(HaveField("Spec.Replicas", HaveValue(BeEquivalentTo(2))))
		})

		It("warns once of entries of driftIgnore that match nothing", func(ctx context.Context) {
			const unused = "driftIgnore names fields that no object of the release has"
			Eventually(ctx, notes(cr, "DriftIgnoreUnused")).Should(HaveExactElements(unused + ": /spec/nothing~1like/this of Deployment.apps, /spec/replicas of StatefulSet"))
			text, err := s.Log()
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.Count(text, unused)).To(Equal(1))
		})

		It("names objects that cannot be compared, and repairs the others", func(ctx context.Context) {
			compared := s.Condition(cr, "Compared")
			blind := &corev1.ConfigMap{}
			change(ctx, blind, "fixed-b", `{"metadata":{"labels":{"compared":"no"}}}`)
			webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-refuses"}}
			webhook.Webhooks = []admissionregistrationv1.ValidatingWebhook{{
				Name: "away.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
				ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/none")},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.Namespace}},
				ObjectSelector:    &metav1.LabelSelector{MatchLabels: map[string]string{"compared": "no"}},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{"*"},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}},
			}}
			s.Create(ctx, webhook)
			Eventually(ctx, func(ctx context.Context) error {
				return k8s.Patch(ctx, blind, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`)), client.DryRunAll)
			}).ShouldNot(Succeed(), "the API server asks the webhook")
			answered(ctx, s, cr, "blind")
			Eventually(ctx, compared).Should(And(HaveField("Status", "False"), HaveField("Reason", "NotCompared"),
				HaveField("Message", And(ContainSubstring("ConfigMap "+s.Namespace+"/fixed-b: "), ContainSubstring("away.example.com"), Not(ContainSubstring("fixed-a"))))))
			Expect(s.Condition(cr, "Successful")(ctx)).To(HaveField("Status", "True"))
			Expect(s.Condition(cr, "Irreconcilable")(ctx)).To(Equal(harness.Condition{}))

			object := &corev1.ConfigMap{}
			change(ctx, object, "fixed-a", `{"data":{"a":"theirs"}}`)
			Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
				err := objectNamed(s, "fixed-a", object)(ctx)
				return object.Data, err
			}).Should(HaveKeyWithValue("a", "c"))
			before, err := compared(ctx)
			Expect(err).NotTo(HaveOccurred())
			answered(ctx, s, cr, "blind again")
			Expect(compared(ctx)).To(Equal(before))

			Expect(k8s.Delete(ctx, webhook)).To(Succeed())
			Eventually(ctx, func(ctx context.Context) error {
				return k8s.Patch(ctx, blind, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`)), client.DryRunAll)
			}).Should(Succeed())
			answered(ctx, s, cr, "seeing")
			Expect(compared(ctx)).To(Equal(harness.Condition{}))
		})

		It("leaves a Job gone that the cluster deletes when its work is done, until the next revision", func(ctx context.Context) {
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "fixed-once"}}
			Expect(k8s.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
			Eventually(ctx, objectNamed(s, "fixed-once", job)).Should(site.BeGone())
			answered(ctx, s, cr, "done")
			Expect(objectNamed(s, "fixed-once", job)(ctx)).To(site.BeGone())
			Expect(k8s.Patch(ctx, cr, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"a":"d"}}`)))).To(Succeed())
			Eventually(ctx, objectNamed(s, "fixed-once", job)).Should(Succeed())
		})
	})
})

var _ = Describe("a cluster-scoped object of a release", func() {
	// asItWas is true if the object is there, as the chart has it.
	asItWas := func(s *site.Site) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			object := priorityClass(s, "wide")
			err := k8s.Get(ctx, client.ObjectKeyFromObject(object), object)
			return err == nil && object.Labels["app.kubernetes.io/managed-by"] == "Helm", client.IgnoreNotFound(err)
		}
	}
	It("is repaired at once when it is changed or deleted, by the next manager too", func(ctx context.Context) {
		s := charted(ctx, plain, "  reconcilePeriod: 1h\n").Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "wide")
		for runs := range 2 {
			s.Watched(ctx, "priorityclasses.scheduling.k8s.io")
			patch(ctx, priorityClass(s, "wide"), `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"theirs"}}}`)
			Eventually(ctx, asItWas(s)).Should(BeTrue())
			Expect(k8s.Delete(ctx, priorityClass(s, "wide"))).To(Succeed())
			Eventually(ctx, asItWas(s)).Should(BeTrue())
			s.Settles(cr, 3-runs) // The installation and two repairs; of the next manager two repairs.
			if runs == 0 {
				Expect(s.Manager.Stop()).To(Succeed())
				s.Start(ctx, hello.Kind)
				Eventually(ctx, s.Condition(cr, "Successful")).Should(HaveField("Status", "True"))
			}
		}
	})

	It("is left until the period where its watch says that", func(ctx context.Context) {
		s := charted(ctx, plain, "  watchClusterScopedResources: false\n").Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "wide")
		Expect(k8s.Delete(ctx, priorityClass(s, "wide"))).To(Succeed())
		Consistently(ctx, asItWas(s), site.Calm).Should(BeFalse())
		answered(ctx, s, cr, "now")
		Expect(asItWas(s)(ctx)).To(BeTrue())
	})
})

// web is a Deployment with two containers.
const web = `apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}-web", annotations: {a: "{{ .Values.a }}"}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {nodeName: none, containers: [{name: one, image: "one:1"}, {name: two, image: "two:1"}]}
`
