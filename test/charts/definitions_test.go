package charts

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// thingOf returns an object of the group's kind Thing.
func thingOf(s *site.Site, group, name string) *unstructured.Unstructured {
	return harness.Custom(schema.GroupKind{Group: group, Kind: "Thing"}, s.Namespace, name, nil)
}

// thing is a template of one, with annotations as JSON.
func thing(group, name, annotations string) string {
	return "apiVersion: " + group + "/v1\nkind: Thing\nmetadata: {name: {{ .Release.Name }}-" + name + ", annotations: " + annotations + "}\nspec: {}\n"
}

// says returns what the group's definition is for; "" if there is none.
func says(group string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := k8s.Get(ctx, client.ObjectKey{Name: "things." + group}, crd)
		return crd.Annotations["says"], client.IgnoreNotFound(err)
	}
}

var _ = Describe("the definitions of a chart", Label("long"), func() {
	data := configMap("a", "{}", "a: {{ .Values.a | default \"b\" | quote }}")

	DescribeTable("come before their objects, and outlive the release", func(ctx context.Context, group, dir, fields string, forget bool) {
		s := charted(ctx, map[string]string{"a.yaml": data}, fields)
		s.Write(map[string]string{
			"chart/Chart.yaml":                 "apiVersion: v2\nname: plain\nversion: 1.0.0\ndependencies: [{name: sub, version: 1.0.0}]\n",
			"chart/charts/sub/Chart.yaml":      "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
			dir + "/crds/things.json":          definition(group, "first"),
			dir + "/templates/thing.yaml":      thing(group, "thing", "{}"),
			"chart/charts/sub/values.yaml":     "{}\n",
			"chart/charts/sub/templates/.keep": "",
		})
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "defined", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Expect(says(group)(ctx)).To(Equal("first"))
		made := thingOf(s, group, "")
		Expect(objectNamed(s, "defined-thing", made)(ctx)).To(Succeed())
		Expect(made.GetOwnerReferences()).To(ContainElement(HaveField("UID", cr.GetUID())))
		others := thingOf(s, group, "theirs")
		Expect(k8s.Create(ctx, others)).To(Succeed())

		By("another definition, and none")
		s.Write(map[string]string{dir + "/crds/things.json": definition(group, "second")})
		change(ctx, cr, `{"spec":{"a":"c"}}`)
		succeeded(ctx, s, cr)
		want := "first"
		if strings.Contains(fields, "replace") {
			want = "second"
		}
		Expect(says(group)(ctx)).To(Equal(want))
		Expect(os.RemoveAll(filepath.Join(s.Options.Project, dir, "crds"))).To(Succeed())
		change(ctx, cr, `{"spec":{"a":"d"}}`)
		succeeded(ctx, s, cr)
		Expect(says(group)(ctx)).To(Equal(want))

		By("its end")
		if forget {
			Expect(k8s.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(s.Namespace), client.MatchingLabels{"owner": "helm"})).To(Succeed())
		}
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, objectNamed(s, "defined", cr)).Should(site.BeGone())
		Eventually(ctx, objectNamed(s, "defined-thing", made)).Should(site.BeGone())
		Expect(says(group)(ctx)).To(Equal(want), "others have objects of it")
		Expect(objectNamed(s, "theirs", others)(ctx)).To(Succeed())
	},
		Entry("of the chart itself", "own.example.com", "chart", "", false),
		Entry("of the chart itself, without a record at the end", "lost.example.com", "chart", "", true),
		Entry("of a subchart", "sub.example.com", "chart/charts/sub", "", false),
		Entry("of a subchart, replaced, without a record at the end", "subreplaced.example.com", "chart/charts/sub", "  crds: replace\n", true),
	)

	It("among its templates go with it unless they are kept, and cannot come with objects of theirs", func(ctx context.Context) {
		const group = "rendered.example.com"
		kept := strings.Replace(definition(group, "kept"), `"annotations":{`, `"annotations":{"helm.sh/resource-policy":"keep",`, 1)
		s := charted(ctx, map[string]string{"a.yaml": data, "crd.yaml": "{{ if .Values.kept }}\n" + kept + "\n{{ else if .Values.defined }}\n" + definition(group, "loose") + "\n{{ end }}", "thing.yaml": "{{ if .Values.thing }}\n" + thing(group, "thing", "{}") + "{{ end }}"}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "rendered", map[string]any{"defined": true, "thing": true})
		s.Create(ctx, cr)
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(HaveField("Message", And(ContainSubstring(`no matches for kind "Thing"`), ContainSubstring("ensure CRDs are installed first"))))

		By("the definition first")
		change(ctx, cr, `{"spec":{"thing":false}}`)
		succeeded(ctx, s, cr)
		Expect(says(group)(ctx)).To(Equal("loose"))
		change(ctx, cr, `{"spec":{"thing":true}}`)
		succeeded(ctx, s, cr)
		Expect(objectNamed(s, "rendered-thing", thingOf(s, group, ""))(ctx)).To(Succeed())

		By("a definition that is dropped")
		change(ctx, cr, `{"spec":{"thing":false,"defined":false}}`)
		succeeded(ctx, s, cr)
		Eventually(ctx, says(group)).Should(BeEmpty())

		By("one that is kept")
		change(ctx, cr, `{"spec":{"kept":true}}`)
		succeeded(ctx, s, cr)
		Expect(says(group)(ctx)).To(Equal("kept"))
		change(ctx, cr, `{"spec":{"kept":false}}`)
		succeeded(ctx, s, cr)
		Expect(says(group)(ctx)).To(Equal("kept"))
	})
})

var _ = Describe("hooks of any kind", func() {
	hook := func(when, weight, policy string) string {
		return `{"helm.sh/hook": "` + when + `", "helm.sh/hook-weight": "` + weight + `", "helm.sh/hook-delete-policy": "` + policy + `"}`
	}

	It("come in the order of their weights, and go as their policies say", func(ctx context.Context) {
		const group, install, upgrade = "hooked.example.com", "pre-install,pre-upgrade", "post-install,post-upgrade"
		s := charted(ctx, map[string]string{
			"a.yaml": configMap("a", "{}", "a: {{ .Values.a | default \"b\" | quote }}"),
			"b.yaml": configMap("late", hook(install, "5", "before-hook-creation"), "a: b"),
			"c.yaml": configMap("early", hook(install, "-5", "before-hook-creation"), "a: b"),
			"d.yaml": thing(group, "thing", hook(upgrade, "1", "before-hook-creation")),
			"e.yaml": thing(group, "passing", hook(upgrade, "2", "hook-succeeded")),
		}, "")
		s.Write(map[string]string{"chart/crds/things.json": definition(group, "first")})
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "hooked", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		// order returns the objects' versions when they were made, which count up, and their UIDs.
		order := func() (versions []int, uids []string) {
			GinkgoHelper()
			for _, name := range []string{"early", "late", "thing"} {
				object := client.Object(&corev1.ConfigMap{})
				if name == "thing" {
					object = thingOf(s, group, "")
				}
				Expect(objectNamed(s, "hooked-"+name, object)(ctx)).To(Succeed())
				version, err := strconv.Atoi(object.GetResourceVersion())
				Expect(err).NotTo(HaveOccurred())
				versions, uids = append(versions, version), append(uids, string(object.GetUID()))
			}
			Expect(objectNamed(s, "hooked-passing", thingOf(s, group, ""))(ctx)).To(site.BeGone())
			return versions, uids
		}
		versions, before := order()
		Expect(versions[0]).To(BeNumerically("<", versions[1]))
		Expect(versions[1]).To(BeNumerically("<", versions[2]))

		change(ctx, cr, `{"spec":{"a":"c"}}`)
		succeeded(ctx, s, cr)
		versions, after := order()
		Expect(versions[0]).To(BeNumerically("<", versions[1]))
		Expect(versions[1]).To(BeNumerically("<", versions[2]))
		for i := range before {
			Expect(after[i]).NotTo(Equal(before[i]), "made anew")
		}
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, objectNamed(s, "hooked", cr)).Should(site.BeGone())
		for _, name := range []string{"early", "late"} {
			Eventually(ctx, objectNamed(s, "hooked-"+name, &corev1.ConfigMap{})).Should(site.BeGone())
		}
	})

	DescribeTable("are refused without a name, before anything is done", func(ctx context.Context, fields string) {
		early := configMap("early", `{helm.sh/hook: "pre-install,pre-upgrade"}`, "a: b")
		nameless := strings.Replace(hookJob(`helm.sh/hook: "post-install,post-upgrade"`, ""), "name: {{ .Release.Name }}-hook", "generateName: x-", 1)
		test := strings.Replace(nameless, "post-install,post-upgrade", "test", 1) // Nobody runs it.
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: b"), "early.yaml": early, "late.yaml": nameless, "test.yaml": test}, fields).Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "nameless", nil)
		s.Create(ctx, cr)
		refused := And(HaveField("Reason", "InvalidChart"), HaveField("Message", And(
			ContainSubstring("plain/templates/late.yaml: a hook of kind Job has a generateName and no name"), Not(ContainSubstring("test.yaml")))))
		Expect(s.Outcome(ctx, cr)).To(refused)
		for _, name := range []string{"early", "a"} {
			Expect(objectNamed(s, "nameless-"+name, &corev1.ConfigMap{})(ctx)).To(site.BeGone())
		}
		Expect(statuses(s, "nameless")(ctx)).To(BeEmpty())

		By("a name for it, and another version of the chart that takes it away again")
		s.Write(map[string]string{"chart/templates/late.yaml": configMap("late", `{helm.sh/hook: post-install}`, "a: b")})
		succeeded(ctx, s, cr)
		s.Write(map[string]string{"chart/templates/late.yaml": nameless, "chart/templates/a.yaml": configMap("a", "{}", "a: c")})
		change(ctx, cr, `{"spec":{"a":"c"}}`)
		Eventually(ctx, s.Condition(cr, "Failure")).Should(refused)
		made := &corev1.ConfigMap{}
		Expect(objectNamed(s, "nameless-a", made)(ctx)).To(Succeed())
		Expect(made.Data).To(Equal(map[string]string{"a": "b"}))
		Expect(statuses(s, "nameless")(ctx)).To(Equal(map[string]string{"1": "deployed"}))
	}, Entry("where the server applies", ""), Entry("where the client applies", "  apply: client\n"))
})
