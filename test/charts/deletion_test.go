package charts

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// behindProxy lets the site's manager reach the API server by a proxy that makes faults.
func behindProxy(s *site.Site) *apiproxy.Proxy {
	GinkgoHelper()
	proxy, err := apiproxy.Start(ground.Cluster.Config)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(proxy.Close()).To(Succeed()) })
	s.Options.Kubeconfig = filepath.Join(s.Dir, "kubeconfig")
	Expect(proxy.WriteKubeconfig(s.Options.Kubeconfig)).To(Succeed())
	return proxy
}

func holdBack(ctx context.Context, object client.Object, finalizers string) {
	GinkgoHelper()
	Expect(k8s.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":`+finalizers+`}}`)))).To(Succeed())
}

var _ = Describe("the deletion of a CR", func() {
	DescribeTable("waits until the last object of its release is gone", func(ctx context.Context, annotations string) {
		s := charted(ctx, plain, "  timeout: 30s\n").Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "waits")
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":`+annotations+`}}`)))).To(Succeed())
		held := &corev1.ConfigMap{}
		Expect(objectNamed(s, "waits-a", held)(ctx)).To(Succeed())
		holdBack(ctx, held, `["example.com/hold"]`)
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(And(HaveField("Reason", "UninstallError"), HaveField("Message", And(ContainSubstring("ConfigMap "+s.Namespace+"/waits-a"), ContainSubstring("example.com/hold")))))
		Consistently(ctx, isGone(cr), site.Calm).Should(Succeed())
		Expect(statuses(s, "waits")(ctx)).To(HaveLen(1), "the history says what is to go")
		holdBack(ctx, held, "null")
		Eventually(ctx, isGone(cr)).Should(site.BeGone())
		Expect(objectNamed(s, "waits-a", held)(ctx)).To(site.BeGone())
		Eventually(ctx, statuses(s, "waits")).Should(BeEmpty())
	},
		Entry("without a word about it", `{}`),
		Entry("with uninstall-wait", `{"helm.sdk.operatorframework.io/uninstall-wait":"true"}`),
	)

	It("does not pretend that a post-delete hook ran", func(ctx context.Context) {
		// The hook has no valid name, so that it fails each time.
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: b"), "hook.yaml": configMap("NO-NAME", `{"helm.sh/hook": post-delete}`, "a: b")}, "").Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "hooked")
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(s.Failed(cr)).Should(BeNumerically(">=", 2))
		Expect(isGone(cr)(ctx)).To(Succeed())
		Expect(s.Condition(cr, "ReleaseFailed")(ctx)).To(HaveField("Message", ContainSubstring("hooked-NO-NAME")))
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"helm.sdk.operatorframework.io/uninstall-disable-hooks":"true"}}}`)))).To(Succeed())
		Eventually(ctx, isGone(cr)).Should(site.BeGone())
		Eventually(ctx, statuses(s, "hooked")).Should(BeEmpty())
	})

	It("takes an object for gone whose kind is not served any more, and so does an upgrade", func(ctx context.Context) {
		gadget := schema.GroupKind{Group: "gone.example.com", Kind: "Gadget"}
		definition := harness.Definition(gadget)
		ground.Define(ctx, definition)
		s := charted(ctx, map[string]string{
			"a.yaml": configMap("a", "{}", "a: {{ .Values.a | default \"b\" | quote }}"),
			"g.yaml": "{{ if not .Values.a }}apiVersion: gone.example.com/v1\nkind: Gadget\nmetadata: {name: {{ .Release.Name }}}\n{{ end }}",
		}, "  reconcilePeriod: 500ms\n").Start(ctx, hello.Kind)
		first, second := deployedBy(ctx, s, hello, "first"), deployedBy(ctx, s, hello, "second")
		Expect(k8s.Delete(ctx, definition)).To(Succeed())
		Eventually(ctx, isGone(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: definition.ObjectMeta})).Should(site.BeGone())
		Eventually(ctx, s.Condition(first, "Compared")).Should(HaveField("Message", ContainSubstring("Gadget")))
		Expect(k8s.Patch(ctx, first, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"a":"without"}}`)))).To(Succeed())
		Eventually(ctx, s.Condition(first, "Deployed")).Should(HaveField("Reason", "UpgradeSuccessful"))
		remove(ctx, first)
		remove(ctx, second)
		for _, name := range []string{"first", "second"} {
			Expect(objectNamed(s, name+"-a", &corev1.ConfigMap{})(ctx)).To(site.BeGone())
		}
	})

	It("names objects that cannot be read, and ends once they can", func(ctx context.Context) {
		s := charted(ctx, plain, "")
		proxy := behindProxy(s)
		s.Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "unread")
		allow := proxy.Add(apiproxy.Rule{
			Match: func(r apiproxy.Request) bool { return r.Resource == "priorityclasses" && r.Verb == "get" },
			Fault: apiproxy.Refuse(http.StatusForbidden),
		})
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(And(HaveField("Reason", "UninstallError"), HaveField("Message", And(ContainSubstring("PriorityClass "+s.Namespace+"-unread"), ContainSubstring("cannot be read")))))
		Expect(isGone(priorityClass(s, "unread"))(ctx)).To(Succeed())
		allow()
		Eventually(ctx, isGone(cr)).Should(site.BeGone())
		Expect(isGone(priorityClass(s, "unread"))(ctx)).To(site.BeGone())
	})

	It("takes the cluster-scoped objects of hooks, too", func(ctx context.Context) {
		hook := strings.Replace(plain["p.yaml"], "metadata: {", "metadata: {annotations: {helm.sh/hook: pre-install}, ", 1)
		s := charted(ctx, map[string]string{"a.yaml": plain["a.yaml"], "p.yaml": hook}, "").Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "hooks")
		Expect(isGone(priorityClass(s, "hooks"))(ctx)).To(Succeed())
		remove(ctx, cr)
		Expect(isGone(priorityClass(s, "hooks"))(ctx)).To(site.BeGone())
	})

	It("names objects that cannot be deleted, with the reason", func(ctx context.Context) {
		s := charted(ctx, plain, "")
		proxy := behindProxy(s)
		s.Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "webhook")
		allow := proxy.Add(apiproxy.Rule{
			Match: func(r apiproxy.Request) bool { return r.Resource == "configmaps" && r.Verb == "delete" },
			Fault: apiproxy.Fault{Withhold: true, Code: http.StatusInternalServerError, Body: []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"failed calling webhook \"no.example.com\"","reason":"InternalError","code":500}`)},
		})
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(And(HaveField("Reason", "UninstallError"), HaveField("Message", ContainSubstring("ConfigMap "+s.Namespace+"/webhook-a: failed calling webhook"))))
		allow()
		Eventually(ctx, isGone(cr)).Should(site.BeGone())
		Expect(objectNamed(s, "webhook-a", &corev1.ConfigMap{})(ctx)).To(site.BeGone())
	})

	It("leaves objects that belong to another release by now, and says so", func(ctx context.Context) {
		s := charted(ctx, plain, "  drift: \"off\"\n").Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "given")
		class := priorityClass(s, "given")
		Expect(k8s.Patch(ctx, class, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"argocd"}}}`)))).To(Succeed())
		remove(ctx, cr)
		Expect(isGone(class)(ctx)).To(Succeed())
		Expect(s.Log()).To(ContainSubstring("PriorityClass " + class.Name + ", which no longer has the labels and annotations of this release"))
		Expect(k8s.Delete(ctx, class)).To(Succeed())
	})

	It("leaves it at an upgrade that does not render it any more, too", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: b"), "b.yaml": "{{ if not .Values.one }}" + configMap("b", "{}", "a: b") + "{{ end }}"}, "  drift: \"off\"\n").Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "moved")
		object := &corev1.ConfigMap{}
		Expect(objectNamed(s, "moved-b", object)(ctx)).To(Succeed())
		Expect(k8s.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"ownerReferences":null,"annotations":{"meta.helm.sh/release-name":"other"}}}`)))).To(Succeed())
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"one":true}}`)))).To(Succeed())
		Eventually(ctx, s.Condition(cr, "Deployed")).Should(HaveField("Reason", "UpgradeSuccessful"))
		Expect(objectNamed(s, "moved-b", object)(ctx)).To(Succeed())
		Expect(s.Log()).To(ContainSubstring("ConfigMap " + s.Namespace + "/moved-b, which belongs to the release " + s.Namespace + "/other"))
		remove(ctx, cr)
		Expect(objectNamed(s, "moved-b", object)(ctx)).To(Succeed())
	})

	It("removes the objects of a failed upgrade", func(ctx context.Context) {
		s := charted(ctx, map[string]string{
			"a.yaml": configMap("a", "{}", "a: b"),
			"z.yaml": "{{ if .Values.more }}" + strings.Replace(plain["p.yaml"], "value: 1", "value: {{ .Values.more }}", 1) + "---\n" + configMap("NO-NAME", "{}", "a: b") + "{{ end }}",
		}, "").Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "more")
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"more":5}}`)))).To(Succeed())
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(HaveField("Reason", "UpgradeError"))
		remove(ctx, cr)
		Expect(isGone(priorityClass(s, "more"))(ctx)).To(site.BeGone())
		Expect(objectNamed(s, "more-a", &corev1.ConfigMap{})(ctx)).To(site.BeGone())
	})

	It("in the foreground runs its hooks, and leaves nothing in other namespaces", func(ctx context.Context) {
		elsewhere := strings.Replace(configMap("other", "{}", "a: b"), "  name:", "  namespace: default\n  name:", 1)
		words := strings.Replace(configMap("words", `{"helm.sh/hook": pre-delete}`, "a: b"), "  name:", "  namespace: default\n  name:", 1)
		job := hookJob(`helm.sh/hook: pre-delete, helm.sh/hook-weight: "1"`, "suspend: true, ")
		s := charted(ctx, map[string]string{"a.yaml": plain["a.yaml"], "other.yaml": elsewhere, "words.yaml": words, "job.yaml": job}, "").Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "front-"+s.Namespace)
		Expect(k8s.Delete(ctx, cr, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		named := func(name string, object client.Object) func(context.Context) error {
			return func(ctx context.Context) error {
				return k8s.Get(ctx, client.ObjectKey{Namespace: "default", Name: cr.GetName() + name}, object)
			}
		}
		Eventually(ctx, named("-words", &corev1.ConfigMap{})).Should(Succeed())
		end(ctx, s, cr.GetName()+"-hook", batchv1.JobComplete, "")
		Eventually(ctx, isGone(cr)).Should(site.BeGone())
		for _, name := range []string{"-words", "-other"} {
			Expect(named(name, &corev1.ConfigMap{})(ctx)).To(site.BeGone(), name)
		}
		Expect(objectNamed(s, cr.GetName()+"-hook", &batchv1.Job{})(ctx)).To(site.BeGone())
		Eventually(ctx, objectNamed(s, cr.GetName()+"-a", &corev1.ConfigMap{})).Should(site.BeGone())
		Expect(statuses(s, cr.GetName())(ctx)).To(BeEmpty())
		Expect(s.Log()).NotTo(ContainSubstring("HooksSkipped"))
	})

	It("goes on without hooks in a namespace that is being deleted", func(ctx context.Context) {
		hook := configMap("hook", `{"helm.sh/hook": pre-delete}`, "a: b")
		s := charted(ctx, map[string]string{"a.yaml": plain["a.yaml"], "p.yaml": plain["p.yaml"], "hook.yaml": hook}, "")
		s.Options.Args = slices.DeleteFunc(s.Options.Args, func(arg string) bool { return strings.HasPrefix(arg, "--leader-election-namespace") })
		s.Options.Args = append(s.Options.Args, "--leader-election-namespace="+ground.Namespace(ctx))
		s.Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "goes")
		record := &corev1.Secret{}
		Expect(objectNamed(s, "sh.helm.release.v1.goes.v1", record)(ctx)).To(Succeed())
		holdBack(ctx, record, `["example.com/hold"]`) // Else it may go before the CR. Helm's update of the record lets it go.
		Expect(k8s.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}})).To(Succeed())
		Eventually(ctx, isGone(cr)).Should(site.BeGone())
		Expect(isGone(priorityClass(s, "goes"))(ctx)).To(site.BeGone())
	})
})

// deletionFaults are how a request of a deletion can fail.
var deletionFaults = map[string]apiproxy.Fault{
	"500": apiproxy.Refuse(http.StatusInternalServerError), "403": apiproxy.Refuse(http.StatusForbidden), "cut": {Withhold: true, Break: true},
}

// deletionPlan is a kind of requests of a deletion, and how each of it fails for a while.
type deletionPlan struct{ verb, resource, fault string }

func (p deletionPlan) String() string { return p.verb + " of " + p.resource + ": " + p.fault }

// concerns reports whether the request is about the CR with the name, its release or its objects.
func (p deletionPlan) concerns(r apiproxy.Request, name string) bool {
	return r.Verb == p.verb && r.Resource == p.resource && (strings.Contains(r.Path, name) || strings.Contains(strings.Join(r.Query["labelSelector"], ""), name))
}

// deletionPlans returns all plans for the requests that a deletion makes.
func deletionPlans(requests []apiproxy.Request) (plans []deletionPlan) {
	for _, r := range requests {
		for fault := range deletionFaults {
			p := deletionPlan{r.Verb, r.Resource, fault}
			if slices.Contains([]string{"get", "list", "delete"}, r.Verb) && slices.Contains([]string{"secrets", "configmaps", "priorityclasses"}, r.Resource) && !slices.Contains(plans, p) {
				plans = append(plans, p)
			}
		}
	}
	return plans
}

var _ = Describe("the record of a release", func() {
	It("may go in the middle of the uninstallation, as it does with its namespace", func(ctx context.Context) {
		s := charted(ctx, plain, "")
		proxy := behindProxy(s)
		s.Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "midway")
		record := &corev1.Secret{}
		Expect(objectNamed(s, "sh.helm.release.v1.midway.v1", record)(ctx)).To(Succeed())
		struck := make(chan error, 1)
		proxy.Add(apiproxy.Rule{
			Once:  true,
			Match: func(r apiproxy.Request) bool { return r.Resource == "configmaps" && r.Verb == "delete" },
			Fault: apiproxy.Fault{Before: func(apiproxy.Request) { struck <- k8s.Delete(ctx, record) }},
		})
		remove(ctx, cr)
		Expect(struck).To(Receive(BeNil()))
		Expect(isGone(priorityClass(s, "midway"))(ctx)).To(site.BeGone())
		Expect(objectNamed(s, "midway-a", &corev1.ConfigMap{})(ctx)).To(site.BeGone())
		Expect(s.Failed(cr)()).To(BeZero())
		Expect(s.Log()).NotTo(ContainSubstring("HooksSkipped"))
	})

	It("is refused with its size where a Secret has no room for it, and nothing is left", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: {{ .Values.a | default \"b\" | quote }}")}, "").Start(ctx, hello.Kind)
		small := deployedBy(ctx, s, hello, "small")
		random := make([]byte, 2<<20)
		_, _ = rand.Read(random) // It never fails.
		s.Write(map[string]string{"chart/files/large.txt": base64.StdEncoding.EncodeToString(random)})
		large := harness.Custom(hello, s.Namespace, "large", nil)
		s.Create(ctx, large)
		says := And(MatchRegexp(`the record of the release has 3\.\d\d MiB`), ContainSubstring("a Secret holds 1 MiB"), ContainSubstring(".helmignore"))
		Expect(s.Outcome(ctx, large)).To(And(HaveField("Reason", "Failed"), HaveField("Message", says)))
		Expect(statuses(s, "large")(ctx)).To(BeEmpty())
		Expect(objectNamed(s, "large-a", &corev1.ConfigMap{})(ctx)).To(site.BeGone())

		By("an upgrade")
		Expect(k8s.Patch(ctx, small, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"a":"c"}}`)))).To(Succeed())
		Eventually(ctx, s.Condition(small, "ReleaseFailed")).Should(HaveField("Message", says))
		Expect(statuses(s, "small")(ctx)).To(Equal(map[string]string{"1": "deployed"}))

		By("a chart without the file")
		s.Write(map[string]string{"chart/.helmignore": "files/\n"})
		for _, cr := range []*unstructured.Unstructured{small, large} {
			Eventually(ctx, s.Condition(cr, "Successful")).Should(HaveField("Status", "True"))
		}
		object := &corev1.ConfigMap{}
		Expect(objectNamed(s, "small-a", object)(ctx)).To(Succeed())
		Expect(object.Data).To(Equal(map[string]string{"a": "c"}))
		Expect(statuses(s, "large")(ctx)).To(Equal(map[string]string{"1": "deployed"}))
	})
})

var _ = Describe("the deletion of a CR under faults", Label("long"), func() {
	It("leaves nothing, and reports no success too early, whatever request fails", func(ctx context.Context) {
		s := charted(ctx, plain, "")
		proxy := behindProxy(s)
		s.Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "count")
		before := len(proxy.Journal())
		remove(ctx, cr)
		plans := deletionPlans(proxy.Journal()[before:])
		Expect(len(plans)).To(BeNumerically(">=", 18), "%v", plans)
		perform := func(p deletionPlan, name string) {
			defer GinkgoRecover()
			cr := deployedBy(ctx, s, hello, name)
			fault, struck, over := deletionFaults[p.fault], make(chan time.Time, 1), atomic.Bool{}
			fault.Before = func(apiproxy.Request) {
				select {
				case struck <- time.Now():
					time.AfterFunc(1500*time.Millisecond, func() { over.Store(true) })
				default:
				}
			}
			end := proxy.Add(apiproxy.Rule{Fault: fault, Match: func(r apiproxy.Request) bool { return p.concerns(r, name) && !over.Load() }})
			defer end()
			Expect(k8s.Delete(ctx, cr)).To(Succeed())
			Eventually(ctx, isGone(cr)).Should(site.BeGone(), "%s", p)
			// The CR is gone: so must be all else, at once.
			Expect(isGone(priorityClass(s, name))(ctx)).To(site.BeGone(), "%s", p)
			Expect(objectNamed(s, name+"-a", &corev1.ConfigMap{})(ctx)).To(site.BeGone(), "%s", p)
			Expect(statuses(s, name)(ctx)).To(BeEmpty(), "%s", p)
			Expect(struck).To(Receive(), "%s did not strike", p)
		}
		var working sync.WaitGroup
		next := make(chan int, len(plans))
		for i := range plans {
			next <- i
		}
		close(next)
		for range 4 {
			working.Go(func() {
				for i := range next {
					perform(plans[i], fmt.Sprintf("plan-%d-x", i))
				}
			})
		}
		working.Wait()
		AddReportEntry("fault plans of deletion", fmt.Sprintf("%d plans: objects left 0, false success 0", len(plans)), ReportEntryVisibilityAlways)
	})
})
