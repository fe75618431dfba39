package charts

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// rival is a kind with a chart beside hello, and tenant one without namespaces.
var (
	rival  = schema.GroupKind{Group: "demo.example.com", Kind: "Rival"}
	tenant = schema.GroupKind{Group: "demo.example.com", Kind: "Tenant"}
)

func clusterWide(kind schema.GroupKind) *apiextensionsv1.CustomResourceDefinition {
	definition := harness.Definition(kind)
	definition.Spec.Scope = apiextensionsv1.ClusterScoped
	return definition
}

// plain is a chart with an object in its namespace and one without any.
var plain = map[string]string{
	"a.yaml": configMap("a", "{}", "a: {{ .Values.a | default \"b\" }}"),
	"p.yaml": "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: {{ .Release.Namespace }}-{{ .Release.Name }}}\nvalue: 1\n",
}

func isGone(object client.Object) func(context.Context) error {
	return func(ctx context.Context) error { return k8s.Get(ctx, client.ObjectKeyFromObject(object), object) }
}

func priorityClass(s *site.Site, name string) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-" + name}}
}

func deployedBy(ctx context.Context, s *site.Site, kind schema.GroupKind, name string) *unstructured.Unstructured {
	GinkgoHelper()
	cr := harness.Custom(kind, s.Namespace, name, nil)
	s.Create(ctx, cr)
	Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
	return cr
}

func remove(ctx context.Context, cr client.Object) {
	GinkgoHelper()
	Expect(k8s.Delete(ctx, cr)).To(Succeed())
	Eventually(ctx, isGone(cr)).Should(site.BeGone())
}

var _ = Describe("the release of another", func() {
	It("is not touched by a CR of another kind with the same chart and name", func(ctx context.Context) {
		s := charted(ctx, plain, "- {group: demo.example.com, version: v1, kind: Rival, chart: chart}\n").Start(ctx, hello.Kind, rival.Kind)
		deployedBy(ctx, s, hello, "one")
		object := &corev1.ConfigMap{}
		Expect(objectNamed(s, "one-a", object)(ctx)).To(Succeed())
		second := harness.Custom(rival, s.Namespace, "one", map[string]any{"a": "c"})
		s.Create(ctx, second)
		Eventually(ctx, s.Condition(second, "Irreconcilable")).Should(HaveField("Message", And(ContainSubstring("duplicate release name"), ContainSubstring("Hello "+s.Namespace+"/one"))))
		remove(ctx, second)
		Expect(statuses(s, "one")(ctx)).To(Equal(map[string]string{"1": "deployed"}))
		again := &corev1.ConfigMap{}
		Expect(objectNamed(s, "one-a", again)(ctx)).To(Succeed())
		Expect(again.ResourceVersion).To(Equal(object.ResourceVersion))
	})

	It("is not taken by adopt while its CR lives, and is when it does not", func(ctx context.Context) {
		s := charted(ctx, plain, "- {group: demo.example.com, version: v1, kind: Rival, chart: chart, adopt: true}\n").Start(ctx, hello.Kind, rival.Kind)
		first := deployedBy(ctx, s, hello, "one")
		second := harness.Custom(rival, s.Namespace, "one", nil)
		s.Create(ctx, second)
		Eventually(ctx, s.Condition(second, "Irreconcilable")).Should(HaveField("Message", ContainSubstring("duplicate release name")))
		Expect(k8s.Patch(ctx, first, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		Expect(k8s.Delete(ctx, first, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		Eventually(ctx, isGone(first)).Should(site.BeGone())
		ask(ctx, second, "now")
		Eventually(ctx, s.Condition(second, "Deployed")).Should(HaveField("Status", "True"))
		remove(ctx, second)
		Eventually(ctx, statuses(s, "one")).Should(BeEmpty())
	})

	It("is not asked for by a cluster-scoped kind without releaseNamespace", func(ctx context.Context) {
		s := charted(ctx, plain, "- {group: demo.example.com, version: v1, kind: Tenant, chart: chart}\n")
		s.Start(ctx, hello.Kind, tenant.Kind)
		deployedBy(ctx, s, hello, "shop-"+s.Namespace)
		cr := harness.Custom(tenant, "", "shop-"+s.Namespace, nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(And(HaveField("Reason", "InvalidSpec"), HaveField("Message", ContainSubstring("releaseNamespace"))))
		Expect(cr.GetFinalizers()).To(BeEmpty())
		remove(ctx, cr)
		Expect(statuses(s, "shop-"+s.Namespace)(ctx)).To(Equal(map[string]string{"1": "deployed"}))
	})

	It("is made for a cluster-scoped kind with releaseNamespace, and removed whole", func(ctx context.Context) {
		s := charted(ctx, plain, "")
		s.Write(map[string]string{"watches.yaml": "- {group: demo.example.com, version: v1, kind: Tenant, chart: chart, releaseNamespace: " + s.Namespace + ", releaseName: spec.called}\n"})
		s.Start(ctx, tenant.Kind)
		cr := harness.Custom(tenant, "", "tenant-"+s.Namespace, map[string]any{"called": "inner"})
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Expect(statuses(s, "inner")(ctx)).To(Equal(map[string]string{"1": "deployed"}))
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"called":"outer"}}`)))).To(Succeed())
		Eventually(ctx, s.Condition(cr, "Failure")).Should(HaveField("Message", ContainSubstring("releases do not move")))
		remove(ctx, cr)
		Eventually(ctx, statuses(s, "inner")).Should(BeEmpty())
		Expect(isGone(priorityClass(s, "inner"))(ctx)).To(site.BeGone())
		Expect(objectNamed(s, "inner-a", &corev1.ConfigMap{})(ctx)).To(site.BeGone())
	})

	DescribeTable("is not needed for a CR whose name Helm does not take", func(ctx context.Context, length int) {
		s := charted(ctx, plain, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, strings.Repeat("n", length), nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(And(HaveField("Reason", "InvalidSpec"), HaveField("Message", ContainSubstring("53"))))
		Expect(cr.GetFinalizers()).To(BeEmpty())
		Expect(s.Runs(cr)()).To(BeZero())
		remove(ctx, cr)
	}, Entry("of 54 characters", 54), Entry("of 73 characters", 73))

	It("is not where adopt finds an object", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": strings.Replace(configMap("a", "{}", "a: {{ .Release.Name }}"), "{{ .Release.Name }}-a", "shared", 1)}, "  adopt: true\n").Start(ctx, hello.Kind)
		deployedBy(ctx, s, hello, "first")
		second := harness.Custom(hello, s.Namespace, "second", nil)
		s.Create(ctx, second)
		Eventually(ctx, s.Condition(second, "ReleaseFailed")).Should(HaveField("Message", ContainSubstring("belongs to the release "+s.Namespace+"/first")))
		remove(ctx, second)
		object := &corev1.ConfigMap{}
		Expect(objectNamed(s, "shared", object)(ctx)).To(Succeed())
		Expect(object.Data).To(Equal(map[string]string{"a": "first"}))
	})

	It("takes no object of another owner by adopt", func(ctx context.Context) {
		s := charted(ctx, plain, "  adopt: true\n").Start(ctx, hello.Kind)
		owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "owner"}}
		s.Create(ctx, owner)
		theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "second-a", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID},
		}}, Data: map[string]string{"a": "theirs"}}
		s.Create(ctx, theirs)
		cr := harness.Custom(hello, s.Namespace, "second", nil)
		s.Create(ctx, cr)
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(HaveField("Message", ContainSubstring("second-a belongs to ConfigMap owner")))
		remove(ctx, cr)
		now := &corev1.ConfigMap{}
		Expect(objectNamed(s, "second-a", now)(ctx)).To(Succeed())
		Expect(now.Data).To(Equal(theirs.Data))
		Expect(now.OwnerReferences).To(Equal(theirs.OwnerReferences))
	})
})

var _ = Describe("a release of the CR's own", func() {
	It("is put back after somebody upgraded it by hand, labels and all", func(ctx context.Context) {
		s := charted(ctx, plain, "  reconcilePeriod: 1s\n").Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "mine")
		helm(s, "upgrade", "mine", filepath.Join(s.Options.Project, "chart"), "--set", "a=by-hand", "--force-conflicts")
		Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
			object := &corev1.ConfigMap{}
			err := objectNamed(s, "mine-a", object)(ctx)
			return object.Data, err
		}).Should(Equal(map[string]string{"a": "b"}))
		Eventually(ctx, statuses(s, "mine")).Should(Equal(map[string]string{"1": "superseded", "2": "deployed"}))
		remove(ctx, cr)
		Eventually(ctx, statuses(s, "mine")).Should(BeEmpty())
	})

	It("is a predecessor's after a restoration from a backup, and is taken over", func(ctx context.Context) {
		s := charted(ctx, plain, "").Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "restored")
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		Expect(k8s.Delete(ctx, cr, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		Eventually(ctx, isGone(cr)).Should(site.BeGone())
		again := deployedBy(ctx, s, hello, "restored")
		Expect(again.GetUID()).NotTo(Equal(cr.GetUID()))
		Eventually(ctx, statuses(s, "restored")).Should(Equal(map[string]string{"2": "superseded", "3": "deployed"}))
		remove(ctx, again)
		Eventually(ctx, statuses(s, "restored")).Should(BeEmpty())
		Expect(isGone(priorityClass(s, "restored"))(ctx)).To(site.BeGone())
	})

	It("is removed although its history was deleted", func(ctx context.Context) {
		s := charted(ctx, plain, "  reconcilePeriod: 1h\n").Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "forgotten")
		Expect(s.Stop()).To(Succeed()) // Else it would be installed again.
		Expect(k8s.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(s.Namespace), client.MatchingLabels{"owner": "helm"})).To(Succeed())
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		s.Start(ctx, hello.Kind)
		Eventually(ctx, isGone(cr)).Should(site.BeGone())
		Expect(isGone(priorityClass(s, "forgotten"))(ctx)).To(site.BeGone())
	})
})

// forge writes a record for the release by Helm's own storage, as somebody can who may write
// Secrets in the namespace, with other data if given. It copies the labels of the genuine one.
func forge(ctx context.Context, s *site.Site, name string, version int, change func(*release.Release), data ...string) {
	GinkgoHelper()
	forged := &release.Release{
		Name: name, Namespace: s.Namespace, Version: version, Info: &release.Info{Status: common.StatusDeployed},
		Chart: &chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: "plain", Version: "1.0.0"}}, Manifest: evil(s),
		Hooks: []*release.Hook{{Name: "evil", Kind: "ConfigMap", Path: "evil", Manifest: evil(s), Events: []release.HookEvent{release.HookPreDelete, release.HookPostDelete, release.HookPreUpgrade}}},
	}
	genuine := &corev1.Secret{}
	if k8s.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: "sh.helm.release.v1." + name + ".v1"}, genuine) == nil {
		forged.Labels = map[string]string{}
		for label, value := range genuine.Labels {
			if strings.HasPrefix(label, "ensign-") {
				forged.Labels[label] = value
			}
		}
	}
	change(forged)
	key := fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, version)
	Expect(client.IgnoreNotFound(k8s.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: key}}))).To(Succeed())
	secrets := fake.NewClientset().CoreV1().Secrets(s.Namespace)
	Expect(driver.NewSecrets(secrets).Create(key, forged)).To(Succeed())
	secret, err := secrets.Get(ctx, key, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, text := range data {
		secret.Data["release"] = []byte(text)
	}
	s.Create(ctx, secret)
}

// evil is the manifest of an object that a tenant may not write, in another namespace.
func evil(s *site.Site) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: evil-" + s.Namespace + ", namespace: kube-system}\ndata: {a: b}\n"
}

// pack returns a record whose text is this.
func pack(text io.Reader) string {
	GinkgoHelper()
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	Expect(err).NotTo(HaveOccurred())
	_, err = io.Copy(w, text)
	Expect(err).NotTo(HaveOccurred())
	Expect(w.Close()).To(Succeed())
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}

// bomb is a record of less than 1 MiB that unpacks to 700 MB.
func bomb() string {
	GinkgoHelper()
	zeros, err := os.Open("/dev/zero")
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = zeros.Close() }()
	return pack(io.LimitReader(zeros, 700<<20))
}

// peak is the most memory that the site's manager has held, in MiB.
func peak(s *site.Site) int {
	GinkgoHelper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	Expect(found).NotTo(BeEmpty())
	kib, err := strconv.Atoi(string(found[1]))
	Expect(err).NotTo(HaveOccurred())
	return kib >> 10
}

var _ = Describe("a forged record of a release", Ordered, func() {
	var s *site.Site

	BeforeAll(func(ctx context.Context) {
		s = charted(ctx, plain, "  reconcilePeriod: 500ms\n").Start(ctx, hello.Kind)
	})

	nothingEvil := func(ctx context.Context) {
		GinkgoHelper()
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "evil-" + s.Namespace}, &corev1.ConfigMap{})).To(site.BeGone())
	}

	// shaped attacks with a record of some KB that decodes to gigabytes, in a place of the record.
	shaped := func(form string, version int) func(context.Context, string) {
		return func(ctx context.Context, name string) {
			before, after, _ := strings.Cut(form, "X")
			forge(ctx, s, name, version, func(*release.Release) {}, pack(strings.NewReader(before+strings.Repeat(`{"":0},`, 4<<20)+"0"+after)))
			DeferCleanup(func() { Expect(peak(s)).To(BeNumerically("<", 400), "MiB") })
		}
	}

	DescribeTable("has no effect, and the release is as its CR wants it", func(ctx context.Context, name string, attack func(context.Context, string)) {
		cr := deployedBy(ctx, s, hello, name)
		// Objects of others that a forged record could have the manager delete.
		binding := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
			Name: "victim-" + s.Namespace + "-" + name, Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"},
			Annotations: map[string]string{"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": s.Namespace},
		}}
		s.Create(ctx, binding)
		attack(ctx, name)
		answered(ctx, s, cr, "look")
		Eventually(ctx, s.Condition(cr, "Deployed")).Should(HaveField("Status", "True"))
		nothingEvil(ctx)
		attack(ctx, name) // The deletion meets it, too.
		remove(ctx, cr)
		nothingEvil(ctx)
		Eventually(ctx, objectNamed(s, name+"-a", &corev1.ConfigMap{})).Should(site.BeGone()) // By the garbage collector, without a record.
		Expect(isGone(priorityClass(s, name))(ctx)).To(site.BeGone())
		Expect(isGone(binding)(ctx)).To(Succeed(), "the victim of a forged record was deleted")
		Eventually(ctx, statuses(s, name)).Should(BeEmpty())
		Expect(s.Metrics(ctx)).NotTo(BeEmpty(), "the manager lives")
	},
		Entry("with a manifest of its own", "manifest", func(ctx context.Context, name string) {
			forge(ctx, s, name, 9, func(*release.Release) {})
		}),
		Entry("with hooks of its own", "hooks", func(ctx context.Context, name string) {
			forge(ctx, s, name, 9, func(r *release.Release) { r.Manifest = "" })
		}),
		Entry("over the genuine one, with its labels", "labels", func(ctx context.Context, name string) {
			forge(ctx, s, name, 1, func(*release.Release) {})
		}),
		Entry("of an object of somebody else", "victim", func(ctx context.Context, name string) {
			forge(ctx, s, name, 9, func(r *release.Release) {
				r.Hooks, r.Manifest = nil, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: victim-"+s.Namespace+"-"+name+"}\n"
			})
		}),
		Entry("of another chart, uninstalled", "chart", func(ctx context.Context, name string) {
			forge(ctx, s, name, 9, func(r *release.Release) {
				r.Chart.Metadata.Name, r.Info.Status = "other", common.StatusUninstalled
			})
		}),
		Entry("that is pending", "pending", func(ctx context.Context, name string) {
			forge(ctx, s, name, 9, func(r *release.Release) { r.Info.Status = common.StatusPendingUpgrade })
		}),
		Entry("that unpacks to 700 MB", "bomb", func(ctx context.Context, name string) {
			forge(ctx, s, name, 9, func(*release.Release) {}, bomb())
		}),
		Entry("whose values are many", "config", shaped(`{"config":{"a":[X]}}`, 9)),
		Entry("whose values are many over the genuine one", "over", shaped(`{"config":{"a":[X]}}`, 1)),
		Entry("whose chart has many values", "values", shaped(`{"chart":{"metadata":{},"values":{"a":[X]}}}`, 9)),
		Entry("that shows many resources", "info", shaped(`{"info":{"resources":{"a":[X]}}}`, 9)),
		Entry("with many hooks", "many", shaped(`{"hooks":[X]}`, 9)),
		Entry("without a chart", "none", func(ctx context.Context, name string) {
			forge(ctx, s, name, 9, func(r *release.Release) { r.Chart = nil })
		}),
		Entry("whose manifest is made of aliases", "aliases", func(ctx context.Context, name string) {
			forge(ctx, s, name, 9, func(r *release.Release) {
				r.Manifest = "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a ,", 100_000) + "]"
			})
		}),
	)

	It("that is an old revision does no more than bring the release back", func(ctx context.Context) {
		cr := deployedBy(ctx, s, hello, "replay")
		first := &corev1.Secret{}
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: "sh.helm.release.v1.replay.v1"}, first)).To(Succeed())
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"a":"c"}}`)))).To(Succeed())
		Eventually(ctx, s.Condition(cr, "Successful")).Should(And(HaveField("Status", "True"), HaveField("Generation", cr.GetGeneration())))
		for _, version := range []string{"1", "2"} {
			Expect(k8s.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "sh.helm.release.v1.replay.v" + version}})).To(Succeed())
		}
		first.ResourceVersion, first.UID = "", ""
		s.Create(ctx, first)
		Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
			object := &corev1.ConfigMap{}
			err := objectNamed(s, "replay-a", object)(ctx)
			return object.Data, err
		}).Should(Equal(map[string]string{"a": "c"}))
		remove(ctx, cr)
	})
})
