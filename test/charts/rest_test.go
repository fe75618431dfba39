package charts

import (
	"context"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// restful is an operator with a period of a second, whose requests go through a proxy.
type restful struct {
	*site.Site

	proxy *apiproxy.Proxy
}

func newRestful(ctx context.Context, fields string) *restful {
	GinkgoHelper()
	text := `a: {{ .Values.a | default "b" | quote }}`
	s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", text), "b.yaml": configMap("b", "{}", text)}, "  reconcilePeriod: 1s\n"+fields)
	return &restful{s, behindProxy(s)}
}

// installed returns a CR whose release is there.
func (r *restful) installed(ctx context.Context, name string) *unstructured.Unstructured {
	GinkgoHelper()
	return deployedBy(ctx, r.Site, hello, name)
}

// costs are the requests of the last periods of a release.
type costs struct{ Periods, OtherReads, DryRuns, Writes int }

// last counts the requests of so many periods of a CR that are over. A period begins with a read of
// the CR.
func (r *restful) last(cr *unstructured.Unstructured, periods int) func() costs {
	return func() costs {
		var c costs
		journal := r.proxy.Journal()
		for i, request := range slices.Backward(journal) {
			if request.Resource == "hellos" && request.Verb == "get" && request.Name == cr.GetName() {
				if c.Periods++; c.Periods > periods {
					return r.count(cr, journal[i:])
				}
			}
		}
		return costs{}
	}
}

func (r *restful) count(cr *unstructured.Unstructured, journal []apiproxy.Request) (c costs) {
	for _, request := range journal {
		switch {
		case request.Resource == "hellos" && request.Verb == "get" && request.Name == cr.GetName():
			c.Periods++
		case !strings.Contains(request.Name, cr.GetName()) && !strings.Contains(strings.Join(request.Query["labelSelector"], ""), "name="+cr.GetName()):
		case request.Write() && request.Query["dryRun"] != nil:
			c.DryRuns++
		case request.Write():
			c.Writes++
		case request.Verb != "watch":
			c.OtherReads++
		}
	}
	c.Periods-- // The last of them has only begun.
	return c
}

// rests waits until the last periods of the CR's release have cost nothing but the read of the CR.
func (r *restful) rests(ctx context.Context, cr *unstructured.Unstructured) {
	GinkgoHelper()
	const periods = 3
	Eventually(ctx, r.last(cr, periods)).Should(Equal(costs{Periods: periods}))
}

func (r *restful) data(name string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		object := &corev1.ConfigMap{}
		err := objectNamed(r.Site, name, object)(ctx)
		return object.Data["a"], err
	}
}

func patch(ctx context.Context, object client.Object, text string) {
	GinkgoHelper()
	Expect(k8s.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(text)))).To(Succeed())
}

func (r *restful) change(ctx context.Context, name string) {
	GinkgoHelper()
	object := &corev1.ConfigMap{}
	Expect(objectNamed(r.Site, name, object)(ctx)).To(Succeed())
	patch(ctx, object, `{"data":{"a":"theirs"}}`)
}

var _ = Describe("a release at rest", Ordered, func() {
	var r *restful
	BeforeAll(func(ctx context.Context) {
		r = newRestful(ctx, "")
		r.Start(ctx, hello.Kind)
	})

	It("costs a read of its CR in each period, and nothing more", func(ctx context.Context) {
		r.rests(ctx, r.installed(ctx, "calm"))
	})

	DescribeTable("is looked at again when something changes", func(ctx context.Context, name string, change func(ctx context.Context, cr *unstructured.Unstructured), found func(ctx context.Context, cr *unstructured.Unstructured)) {
		cr := r.installed(ctx, name)
		r.rests(ctx, cr)
		change(ctx, cr)
		found(ctx, cr)
		r.rests(ctx, cr)
	},
		Entry("an object", "changed", func(ctx context.Context, cr *unstructured.Unstructured) {
			r.change(ctx, cr.GetName()+"-a")
		}, func(ctx context.Context, cr *unstructured.Unstructured) {
			Eventually(ctx, r.data(cr.GetName()+"-a")).Should(Equal("b"))
		}),
		Entry("an object that is deleted", "deleted", func(ctx context.Context, cr *unstructured.Unstructured) {
			object := &corev1.ConfigMap{}
			Expect(objectNamed(r.Site, cr.GetName()+"-a", object)(ctx)).To(Succeed())
			Expect(k8s.Delete(ctx, object)).To(Succeed())
		}, func(ctx context.Context, cr *unstructured.Unstructured) {
			Eventually(ctx, r.data(cr.GetName()+"-a")).Should(Equal("b"))
		}),
		Entry("the status of the record", "marked", func(ctx context.Context, cr *unstructured.Unstructured) {
			record := &corev1.Secret{}
			Expect(objectNamed(r.Site, "sh.helm.release.v1."+cr.GetName()+".v1", record)(ctx)).To(Succeed())
			patch(ctx, record, `{"metadata":{"labels":{"status":"failed"}}}`)
		}, func(ctx context.Context, cr *unstructured.Unstructured) {
			Eventually(ctx, statuses(r.Site, cr.GetName())).Should(Equal(map[string]string{"1": "deployed"})) // As the ledger has it.
		}),
		Entry("a record of somebody else", "forged", func(ctx context.Context, cr *unstructured.Unstructured) {
			forge(ctx, r.Site, cr.GetName(), 7, func(r *release.Release) { r.Info.Status = common.StatusDeployed })
		}, func(ctx context.Context, cr *unstructured.Unstructured) {
			Eventually(ctx, statuses(r.Site, cr.GetName())).ShouldNot(HaveKeyWithValue("7", "deployed"))
		}),
		Entry("the values", "valued", func(ctx context.Context, cr *unstructured.Unstructured) {
			patch(ctx, cr, `{"spec":{"a":"c"}}`)
		}, func(ctx context.Context, cr *unstructured.Unstructured) {
			Eventually(ctx, r.data(cr.GetName()+"-a")).Should(Equal("c"))
		}),
		Entry("a request of somebody, which leads to a look", "asked", func(context.Context, *unstructured.Unstructured) {}, func(ctx context.Context, cr *unstructured.Unstructured) {
			from := len(r.proxy.Journal())
			answered(ctx, r.Site, cr, "now")
			Expect(r.count(cr, r.proxy.Journal()[from:])).To(HaveField("DryRuns", BeNumerically(">=", 2)))
		}),
	)

	It("is looked at in each period while a watch of its objects cannot be kept", func(ctx context.Context) {
		cr := r.installed(ctx, "unwatched")
		r.rests(ctx, cr)
		mended := r.proxy.Add(apiproxy.Rule{
			Match: func(r apiproxy.Request) bool {
				return r.Resource == "configmaps" && r.Name == "" && (r.Verb == "watch" || r.Verb == "list")
			},
			Fault: apiproxy.Refuse(http.StatusServiceUnavailable),
		})
		r.proxy.Away()() // It breaks the connections that are open.
		Eventually(ctx, r.last(cr, 3)).Should(HaveField("DryRuns", BeNumerically(">=", 6)))
		r.change(ctx, "unwatched-a")
		Eventually(ctx, r.data("unwatched-a")).Should(Equal("b"))
		mended()
		r.rests(ctx, cr)
	})

	It("is compared when a manager starts, for earlier changes", func(ctx context.Context) {
		cr := r.installed(ctx, "left")
		r.rests(ctx, cr)
		Expect(r.Manager.Kill()).To(Succeed())
		object := &corev1.ConfigMap{}
		Expect(objectNamed(r.Site, "left-a", object)(ctx)).To(Succeed())
		replaced := &corev1.ConfigMap{Data: map[string]string{"a": "theirs"}}
		replaced.Namespace, replaced.Name, replaced.OwnerReferences = object.Namespace, object.Name, object.OwnerReferences
		Expect(k8s.Delete(ctx, object)).To(Succeed())
		Expect(k8s.Create(ctx, replaced)).To(Succeed())
		r.Start(ctx, hello.Kind)
		Eventually(ctx, r.data("left-a")).Should(Equal("b"))
		r.rests(ctx, cr)
	})
})

var _ = It("a release at rest is upgraded when its chart changes", func(ctx context.Context) {
	r := newRestful(ctx, "")
	r.Start(ctx, hello.Kind)
	cr := r.installed(ctx, "charted")
	r.rests(ctx, cr)
	r.Write(map[string]string{"chart/values.yaml": "a: of the chart\n"})
	Eventually(ctx, r.data("charted-a")).Should(Equal("of the chart"))
	r.rests(ctx, cr)
})

var _ = It("a release whose objects are not watched is compared in each period", func(ctx context.Context) {
	r := newRestful(ctx, "  watchDependentResources: false\n")
	r.Start(ctx, hello.Kind)
	cr := r.installed(ctx, "subject")
	Eventually(ctx, r.last(cr, 3)).Should(HaveField("DryRuns", 6))
	r.change(ctx, "subject-a")
	Eventually(ctx, r.data("subject-a")).Should(Equal("b"))
})

var _ = It("a drift that is only warned of is told once while nothing changes", func(ctx context.Context) {
	r := newRestful(ctx, "  drift: warn\n")
	r.Start(ctx, hello.Kind)
	cr := r.installed(ctx, "warned")
	r.rests(ctx, cr)
	r.change(ctx, "warned-a")
	const warning = "WARNING: drift detected, not repaired"
	told := func() (int, error) {
		text, err := r.Log()
		return strings.Count(text, warning), err
	}
	Eventually(ctx, told).Should(Equal(1))
	r.rests(ctx, cr)
	Expect(told()).To(BeNumerically("<=", 2)) // Twice where the informers showed the change late.
})
