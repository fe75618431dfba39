package children

import (
	"context"
	_ "embed"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bye is the content of a finalizer.
//
//go:embed testdata/bye.yml
var bye string

var _ = Describe("a CR whose finalizer does not succeed", func() {
	var p *operator
	BeforeEach(func(ctx context.Context) {
		p = &operator{ground.Site(ctx, map[string]string{
			"content.yml": boxes, "bye.yml": bye, "watches.yaml": watching("finalizer: {name: children.ensign.io/finalizer, playbook: bye.yml}"),
		})}
		p.start(ctx)
	})
	// made makes a CR whose finalizer is there.
	made := func(ctx context.Context, spec map[string]any) *unstructured.Unstructured {
		GinkgoHelper()
		cr := p.custom("leaves", spec)
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		Eventually(p.Ended(cr)).Should(Equal(1))
		return cr
	}
	abandon := func(ctx context.Context, cr *unstructured.Unstructured) {
		GinkgoHelper()
		patch(ctx, cr.Object, `{"metadata": {"annotations": {"ansible.sdk.operatorframework.io/abandon": "true"}}}`)
	}
	gone := func(ctx context.Context, cr *unstructured.Unstructured) {
		GinkgoHelper()
		Eventually(ctx, field(cr.Object, "metadata", "name")).Should(BeEmpty())
	}
	logs := func(matcher types.GomegaMatcher) {
		GinkgoHelper()
		Eventually(p.Log).Should(matcher)
	}

	It("goes when somebody abandons it, with an Event that says what may stay", func(ctx context.Context) {
		cr := made(ctx, map[string]any{"fails": true})
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(p.Failed(cr)).Should(BeNumerically(">=", 1))
		abandon(ctx, cr)
		gone(ctx, cr)
		Eventually(ctx, func(ctx context.Context) ([]string, error) {
			var notes []string
			list := &eventsv1.EventList{}
			err := k8s.List(ctx, list, client.InNamespace(p.Namespace))
			for _, event := range list.Items {
				if event.Reason == "FinalizerAbandoned" {
					notes = append(notes, event.Type+" "+event.Note)
				}
			}
			return notes, err
		}).Should(ConsistOf(HavePrefix("Warning The finalizer is removed, because the annotation abandon is set: the finalizer's content did not succeed")))
	})

	It("goes while its finalizer runs, which is ended, and not before it is deleted", func(ctx context.Context) {
		cr := made(ctx, map[string]any{"waits": filepath.Join(p.Dir, "never")})
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		logs(MatchRegexp(`run started.*"cr": "` + p.Namespace + `/leaves".*"reason": "deleted"`))
		abandon(ctx, cr)
		gone(ctx, cr)
	})

	It("says that the namespace is being deleted, and names the remedy", func(ctx context.Context) {
		cr := made(ctx, map[string]any{})
		Expect(k8s.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace}})).To(Succeed())
		says := And(ContainSubstring("because it is being terminated"), HaveSuffix(`/docs/howto-finalizers.md#a-cr-stuck-in-deletion-terminating)`), ContainSubstring(`abandon: "true" removes the finalizer`))
		Eventually(p.Condition(cr, "Failure")).WithContext(ctx).Should(HaveField("Message", says))
		logs(MatchRegexp(`run failed.*abandon: .{2}true.{2} removes the finalizer`))
		abandon(ctx, cr)
		Eventually(ctx, func(ctx context.Context) error {
			return k8s.Get(ctx, client.ObjectKey{Name: p.Namespace}, &corev1.Namespace{})
		}).Should(MatchError(ContainSubstring("not found")))
		logs(ContainSubstring("removing the finalizer although its content did not succeed"))
	})

	It("is told what its finalizer has created in vain", func(ctx context.Context) {
		cr := made(ctx, map[string]any{})
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		gone(ctx, cr)
		logs(MatchRegexp(`objects that the finalizer's run created will be deleted with the resource.*"objects": \["ConfigMap ` + p.Namespace + `/backup"\]`))
		Eventually(ctx, field(p.configMap("backup"), "metadata", "name")).Should(BeEmpty())
	})
})
