package charts

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// canary is in the text of each Secret that values come from. Nobody may see it but in what the
// chart makes of it.
const canary = "Xk7-canary"

var _ = Describe("values from objects", Ordered, func() {
	var (
		s  *site.Site
		cr *unstructured.Unstructured
	)
	object := func(name string, data map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}, StringData: data}
	}
	// create leaves the object to the next specs.
	create := func(ctx context.Context, object client.Object) {
		GinkgoHelper()
		Expect(k8s.Create(ctx, object)).To(Succeed())
	}
	// change applies a merge patch.
	change := func(ctx context.Context, object client.Object, patch string) {
		GinkgoHelper()
		Expect(k8s.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
	}
	data := func(ctx context.Context) (map[string]string, error) {
		made := &corev1.ConfigMap{}
		err := objectNamed(s, cr.GetName()+"-a", made)(ctx)
		return made.Data, err
	}

	BeforeAll(func(ctx context.Context) {
		s = charted(ctx, map[string]string{
			"a.yaml":    configMap("a", "{}", "size: {{ .Values.size | quote }}\n  password: {{ .Values.auth.password | quote }}\n  own: {{ .Values.own | quote }}"),
			"NOTES.txt": "The password is {{ .Values.auth.password }}.",
			"bad.yaml":  `{{ if .Values.bad }}{{ fail (printf "no good: %s" .Values.auth.password) }}{{ end }}`,
		}, `  reconcilePeriod: 1h
  valuesFrom:
  - {kind: ConfigMap, name: sizes, optional: true}
  - {kind: Secret, name: spec.login, key: password, targetPath: auth.password}
  valuesFromInSpec: spec.valuesFrom
`)
		s.Write(map[string]string{"chart/values.schema.json": `{"properties": {"auth": {"properties": {"password": {"type": "string", "pattern": "^[^!]*$"}}}}}`})
		s.Limit(ctx,
			rbacv1.PolicyRule{APIGroups: []string{hello.Group}, Resources: []string{"hellos", "hellos/status"}, Verbs: []string{"*"}},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"*"}},
			rbacv1.PolicyRule{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		)
		s.Start(ctx, hello.Kind)
		cr = harness.Custom(hello, s.Namespace, "fed", map[string]any{"login": "login", "size": int64(3)})
		s.Create(ctx, cr)
	})

	It("waits for an object that is not there, and goes on at once when it is", func(ctx context.Context) {
		Eventually(ctx, s.Condition(cr, "Irreconcilable")).Should(HaveField("Message", ContainSubstring(`Secret "login" not found in the namespace `+s.Namespace)))
		Expect(s.Condition(cr, "Failure")(ctx)).To(HaveField("Reason", "InvalidValues"))
		create(ctx, object("login", map[string]string{"other": canary}))
		Eventually(ctx, s.Condition(cr, "Irreconcilable")).Should(HaveField("Message", ContainSubstring(`the Secret "login" has no key "password"`)))
		change(ctx, object("login", nil), `{"stringData":{"password":"first,`+canary+`"}}`)
		Eventually(ctx, data).Should(Equal(map[string]string{"size": "3", "password": "first," + canary, "own": ""}))
		Eventually(ctx, s.Condition(cr, "Successful")).Should(HaveField("Status", "True"))
	})

	It("upgrades when an object changes, and makes no revision when none does", func(ctx context.Context) {
		change(ctx, object("login", nil), `{"stringData":{"password":"second `+canary+`"}}`)
		Eventually(ctx, data).Should(HaveKeyWithValue("password", "second "+canary))
		Eventually(ctx, s.Condition(cr, "Deployed")).Should(HaveField("Reason", "UpgradeSuccessful"))
		create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "sizes"}, Data: map[string]string{"values.yaml": "size: 1\nown: shared"}})
		Eventually(ctx, data).Should(And(HaveKeyWithValue("size", "3"), HaveKeyWithValue("own", "shared")))
		Eventually(ctx, statuses(s, "fed")).Should(HaveLen(3))
		runs, err := s.Runs(cr)()
		Expect(err).NotTo(HaveOccurred())
		change(ctx, object("login", nil), `{"stringData":{"unused":"`+canary+`"}}`)
		Consistently(s.Runs(cr), site.Calm).Should(Equal(runs), "the values are the same")
		Expect(statuses(s, "fed")(ctx)).To(HaveLen(3))
	})

	It("takes the objects that the resource lists, in its own namespace alone", func(ctx context.Context) {
		create(ctx, object("mine", map[string]string{"values.yaml": "own: mine " + canary}))
		change(ctx, cr, `{"spec":{"valuesFrom":[{"kind":"Secret","name":"mine"}]}}`)
		Eventually(ctx, data).Should(HaveKeyWithValue("own", "mine "+canary))
		change(ctx, object("mine", nil), `{"stringData":{"values.yaml":"own: changed `+canary+`"}}`)
		Eventually(ctx, data).Should(HaveKeyWithValue("own", "changed "+canary))
		change(ctx, cr, `{"spec":{"valuesFrom":[{"kind":"Secret","name":"ensign-seal","namespace":"default"}]}}`)
		Eventually(ctx, s.Condition(cr, "Failure")).Should(And(HaveField("Reason", "InvalidSpec"), HaveField("Message", ContainSubstring(`"namespace" is not a field`))))
		change(ctx, cr, `{"spec":{"valuesFrom":null}}`)
		Eventually(ctx, s.Condition(cr, "Successful")).Should(HaveField("Status", "True"))
		Eventually(ctx, data).Should(HaveKeyWithValue("own", "shared"))
	})

	It("says what is wrong without a word of it, and goes on when that is changed", func(ctx context.Context) {
		change(ctx, object("login", nil), `{"stringData":{"password":"bad! `+canary+`"}}`)
		Eventually(ctx, s.Condition(cr, "Irreconcilable")).Should(HaveField("Message", ContainSubstring("at '/auth/password': '(redacted)' does not match pattern")))
		change(ctx, object("login", nil), `{"stringData":{"password":"good `+canary+`"}}`)
		Eventually(ctx, data).Should(HaveKeyWithValue("password", "good "+canary))
		sizes := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "sizes"}}
		change(ctx, sizes, `{"data":{"values.yaml":"bad: true"}}`)
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(HaveField("Message", ContainSubstring("no good: (redacted)")))
		change(ctx, sizes, `{"data":{"values.yaml":"own: mended"}}`)
		Eventually(ctx, data).Should(HaveKeyWithValue("own", "mended"))
		Eventually(ctx, s.Condition(cr, "Successful")).Should(HaveField("Status", "True"))
	})

	It("shows no value of a Secret anywhere", func(ctx context.Context) {
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(cr), cr)).To(Succeed())
		status, err := json.Marshal(cr.Object["status"])
		Expect(err).NotTo(HaveOccurred())
		Expect(string(status)).To(And(ContainSubstring("Not shown: values of this release come from Secrets"), Not(ContainSubstring("canary"))))
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, objectNamed(s, "fed", cr)).Should(site.BeGone())
		list := &eventsv1.EventList{}
		Expect(k8s.List(ctx, list, client.InNamespace(s.Namespace))).To(Succeed())
		Expect(list.Items).NotTo(BeEmpty())
		Expect(fmt.Sprint(list.Items)).NotTo(ContainSubstring("canary"))
		text, err := s.Log()
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Contains(text, "canary")).To(BeFalse(), text)
	})
})

var _ = Describe("values from objects, where the release is elsewhere", func() {
	It("are those of the CR's namespace alone", func(ctx context.Context) {
		elsewhere := ground.Namespace(ctx)
		login := func(namespace, password string) *corev1.Secret {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "login"}, StringData: map[string]string{"password": password}}
		}
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "password: {{ .Values.password }}")}, `  releaseNamespace: `+elsewhere+`
  valuesFrom: [{kind: Secret, name: login, key: password, targetPath: password}]
`).Start(ctx, hello.Kind)
		s.Create(ctx, login(elsewhere, "not theirs"))
		cr := harness.Custom(hello, s.Namespace, "placed", nil)
		s.Create(ctx, cr)
		Eventually(ctx, s.Condition(cr, "Failure")).Should(HaveField("Message", ContainSubstring(`Secret "login" not found in the namespace `+s.Namespace)))
		s.Create(ctx, login(s.Namespace, "theirs"))
		made := &corev1.ConfigMap{}
		Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
			err := k8s.Get(ctx, client.ObjectKey{Namespace: elsewhere, Name: "placed-a"}, made)
			return made.Data, err
		}).Should(Equal(map[string]string{"password": "theirs"}))
	})
})
