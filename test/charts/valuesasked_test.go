package charts

import (
	"context"
	"encoding/json"
	"math/rand/v2"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// What people ask about values from objects where other operators have them.
var _ = Describe("values from objects, as people have them", Label("long"), Ordered, func() {
	var s *site.Site

	BeforeAll(func(ctx context.Context) {
		s = charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "all: {{ .Values | toJson | quote }}")}, "  valuesFromInSpec: spec.valuesFrom\n")
		s.Write(map[string]string{"chart/values.yaml": "removed: by null\n"})
		s.Start(ctx, hello.Kind)
	})

	// given makes a Secret of the data, and a CR that lists it.
	given := func(ctx context.Context, name string, data map[string]string, entries ...map[string]any) *unstructured.Unstructured {
		GinkgoHelper()
		s.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}, StringData: data})
		var list []any
		for _, entry := range entries {
			if entry["kind"] == nil {
				entry["kind"], entry["name"] = "Secret", name
			}
			list = append(list, entry)
		}
		cr := harness.Custom(hello, s.Namespace, name, map[string]any{"valuesFrom": list})
		s.Create(ctx, cr)
		return cr
	}

	pem := "-----BEGIN CERTIFICATE-----\nMIIB/+a=\n-----END CERTIFICATE-----\n"
	DescribeTable("give", func(ctx context.Context, name string, data map[string]string, want map[string]any, entries ...map[string]any) {
		cr := given(ctx, name, data, entries...)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		made, got := &corev1.ConfigMap{}, map[string]any{}
		Expect(objectNamed(s, name+"-a", made)(ctx)).To(Succeed())
		Expect(json.Unmarshal([]byte(made.Data["all"]), &got)).To(Succeed())
		if _, has := want["removed"]; !has {
			Expect(got).To(HaveKeyWithValue("removed", "by null"))
			delete(got, "removed")
		} else {
			delete(want, "removed")
		}
		Expect(got).To(Equal(want))
	},
		Entry("a list of brokers", "brokers", map[string]string{"brokers": "a.net:9092,b.net:9092"}, map[string]any{"kafka": map[string]any{"Brokers": "a.net:9092,b.net:9092"}},
			map[string]any{"key": "brokers", "targetPath": "kafka.Brokers"}),
		Entry("a file of credentials in JSON", "json", map[string]string{"c.json": "{\n  \"a\": \"b\", \"c\": [1, 2]\n}"}, map[string]any{"credentials": "{\n  \"a\": \"b\", \"c\": [1, 2]\n}"},
			map[string]any{"key": "c.json", "targetPath": "credentials"}),
		Entry("a password with all that shells and Helm read", "marks", map[string]string{"p": `a=b,c\d{e}[0]"'$x%y`}, map[string]any{"p": `a=b,c\d{e}[0]"'$x%y`}, map[string]any{"key": "p", "targetPath": "p"}),
		Entry("texts that look like numbers and truth values", "types", map[string]string{"a": "0123", "b": "1e3", "c": "true", "d": "null"}, map[string]any{"a": "0123", "b": "1e3", "c": "true", "d": "null"},
			map[string]any{"key": "a", "targetPath": "a"}, map[string]any{"key": "b", "targetPath": "b"}, map[string]any{"key": "c", "targetPath": "c"}, map[string]any{"key": "d", "targetPath": "d"}),
		Entry("a certificate for a webhook", "bundle", map[string]string{"ca.crt": pem}, map[string]any{"caBundle": pem}, map[string]any{"key": "ca.crt", "targetPath": "caBundle"}),
		Entry("a name with a dot in the path", "dotted", map[string]string{"v": "x"}, map[string]any{"annotations": map[string]any{"example.com/key": "x"}}, map[string]any{"key": "v", "targetPath": `annotations.example\.com/key`}),
		Entry("an object that has some of the keys", "some", map[string]string{"values.yaml": "a: b"}, map[string]any{"a": "b"},
			map[string]any{}, map[string]any{"key": "scaling", "optional": true}, map[string]any{"kind": "ConfigMap", "name": "none", "optional": true}),
		Entry("anchors of YAML, and null over a default of the chart", "anchors", map[string]string{"values.yaml": "base: &b {a: 1}\nmore: {<<: *b, c: 2}\nremoved: null"},
			map[string]any{"base": map[string]any{"a": 1.0}, "more": map[string]any{"a": 1.0, "c": 2.0}, "removed": nil}, map[string]any{}),
		Entry("a whole number that is large", "large", map[string]string{"values.yaml": "id: 12345678901"}, map[string]any{"id": 12345678901.0}, map[string]any{}),
	)

	DescribeTable("say", func(ctx context.Context, name string, data map[string]string, reason, says string, entries ...map[string]any) {
		cr := given(ctx, name, data, entries...)
		Eventually(ctx, s.Condition(cr, "Failure")).Should(And(HaveField("Reason", reason), HaveField("Message", And(ContainSubstring(says), Not(ContainSubstring("hush"))))))
	},
		Entry("that the path of a value cannot name an element of a list", "element", map[string]string{"k": "hush"}, "InvalidSpec", "an element of a list cannot be set", map[string]any{"key": "k", "targetPath": "config.receivers[4].access_key"}),
		Entry("that there is no key values.yaml", "keys", map[string]string{"username": "hush", "password": "hush"}, "InvalidValues", `the Secret "keys" has no key "values.yaml"`, map[string]any{}),
		Entry("that an object is not in this namespace", "elsewhere", nil, "InvalidValues", `ConfigMap "kube-root-ca.crt-elsewhere" not found`, map[string]any{"kind": "ConfigMap", "name": "kube-root-ca.crt-elsewhere"}),
		Entry("where YAML is none", "tabs", map[string]string{"values.yaml": "a: b\n\thush: c\n"}, "InvalidValues", "it is not a YAML mapping, at line 2", map[string]any{}),
		Entry("that a text is not a mapping", "nomap", map[string]string{"values.yaml": "hush"}, "InvalidValues", "it is not a YAML mapping", map[string]any{}),
	)

	It("leaves a release alone whose object goes, and names the object", func(ctx context.Context) {
		cr := given(ctx, "goes", map[string]string{"values.yaml": "a: b"}, map[string]any{})
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Expect(k8s.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "goes"}})).To(Succeed())
		Eventually(ctx, s.Condition(cr, "Failure")).Should(HaveField("Message", ContainSubstring(`Secret "goes" not found`)))
		Expect(objectNamed(s, "goes-a", &corev1.ConfigMap{})(ctx)).To(Succeed())
		Expect(statuses(s, "goes")(ctx)).To(HaveLen(1))
	})

	It("says what is too large for Helm's storage", func(ctx context.Context) {
		text := make([]byte, 900_000)
		for i := range text {
			text[i] = 'a' + byte(rand.N(26))
		}
		cr := given(ctx, "huge", map[string]string{"k": string(text)}, map[string]any{"key": "k", "targetPath": "k"})
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(And(HaveField("Status", "True"), HaveField("Message", Not(BeEmpty()))))
		Expect(s.Condition(cr, "ReleaseFailed")(ctx)).To(HaveField("Message", Not(ContainSubstring(string(text[:40])))))
	})
})
