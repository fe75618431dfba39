package children

import (
	"context"
	_ "embed"
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// loops has tasks by which CRs trigger themselves and each other.
//
//go:embed testdata/loops.yml
var loops string

// unpaused is how many runs begin without a pause: the first, which nobody holds, and those
// for which the bucket has a token.
const unpaused = 11

var _ = Describe("CRs that trigger themselves or each other", func() {
	var p *operator
	operate := func(ctx context.Context) {
		p = &operator{ground.Site(ctx, map[string]string{
			"content.yml": loops, "watches.yaml": watching("references: [{version: v1, kind: Secret, name: spec.password}]"),
		})}
		p.start(ctx)
	}

	// paused checks the pauses of the CR's runs for which its bucket had no token.
	paused := func(cr *unstructured.Unstructured) {
		GinkgoHelper()
		pauses := p.Pauses(cr)
		for i := unpaused - 1; i < len(pauses); i++ {
			least := min(time.Second<<(i-unpaused+1), 10*time.Second)
			Expect(pauses[i]).To(BeNumerically(">=", least), "pause %d of %v", i+1, pauses)
		}
	}

	// slowed waits until the runs of one of the CRs are slowed down, and returns which, and what it
	// is said to be triggered by. Where a trigger comes later than the pause is over, which is up to
	// the machine's speed, none has to wait: the runs that began before may be more than unpaused.
	slowed := func(ctx context.Context, crs ...*unstructured.Unstructured) (cr *unstructured.Unstructured, message string) {
		GinkgoHelper()
		Eventually(ctx, func(ctx context.Context) (string, error) {
			for _, cr = range crs {
				condition, err := p.Condition(cr, "SlowedDown")(ctx)
				message = condition.Message
				if err != nil || condition.Status == "True" {
					return condition.Status, err
				}
			}
			return "", nil
		}).Should(Equal("True"))
		text, err := p.Log()
		Expect(err).NotTo(HaveOccurred())
		warning := regexp.MustCompile(`slowing down the runs of the resource, which may trigger themselves\s+\{"kind": "Box", "object": "` + p.Namespace + "/" + cr.GetName() + `"`).FindStringIndex(text)
		Expect(warning).NotTo(BeNil(), "the log names it")
		began := regexp.MustCompile(`run started.*"cr": "` + p.Namespace + "/" + cr.GetName() + `"`)
		Expect(len(began.FindAllString(text[:warning[0]], -1))).To(BeNumerically(">=", unpaused))
		paused(cr)
		Eventually(ctx, func(ctx context.Context) ([]string, error) {
			var notes []string
			list := &eventsv1.EventList{}
			err := k8s.List(ctx, list, client.InNamespace(p.Namespace))
			for _, event := range list.Items {
				if event.Reason == "SlowedDown" && event.Regarding.Name == cr.GetName() {
					notes = append(notes, event.Note)
				}
			}
			return notes, err
		}).Should(Equal([]string{message}))
		return cr, message
	}

	It("are slowed down although they succeed, where somebody changes a child after each run", func(ctx context.Context) {
		operate(ctx)
		child := p.configMap("child")
		cr := p.custom("loops", making(child))
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		ctx, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() { // As another controller would.
			defer close(done)
			for ctx.Err() == nil {
				if value, _ := field(child, "data", "a")(ctx); value == "1" {
					_ = k8s.Patch(ctx, &unstructured.Unstructured{Object: child}, client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":"2"}}`)), client.FieldOwner("rival"))
				}
				time.Sleep(interval)
			}
		}()
		DeferCleanup(func() { stop(); <-done })
		_, trigger := slowed(ctx, cr)
		Expect(trigger).To(HaveSuffix("related: ConfigMap " + p.Namespace + "/child changed by rival (data.a)"))
		Eventually(ctx, p.Metrics).Should(ContainSubstring(`ensign_operator_slowed_resources{GVK="children.ensign.io/v1, Kind=Box"} 1`))
		Expect(p.Metrics(ctx)).To(MatchRegexp(`ensign_operator_throttled_triggers_total\{GVK="children.ensign.io/v1, Kind=Box",by="bucket"\} [1-9]`))

		By("ending the loop: the last change is repaired")
		stop()
		<-done
		Eventually(context.WithoutCancel(ctx), field(child, "data", "a")).Should(Equal("1"))
	})

	// They loop beside each other: they wait more than they work.
	Context("beside each other", Ordered, ContinueOnFailure, func() {
		var a, b, counts, fails *unstructured.Unstructured
		BeforeAll(func(ctx context.Context) {
			operate(ctx)
			for _, name := range []string{"from-a", "from-b"} {
				Expect(k8s.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name}})).To(Succeed())
			}
			a = p.custom("a", map[string]any{"writes": "from-a", "password": "from-b"})
			b = p.custom("b", map[string]any{"writes": "from-b", "password": "from-a"})
			counts = p.custom("counts", map[string]any{"count": int64(0)})
			fails = p.custom("fails", map[string]any{"count": int64(0), "fails": true, "password": "absent"})
			for _, cr := range []*unstructured.Unstructured{a, b, counts, fails} {
				Expect(k8s.Create(ctx, cr)).To(Succeed())
			}
		})

		It("are both throttled if each changes an object of the other's references, and one is named", func(ctx context.Context) {
			// While one of them waits, triggers of the other may come after its own pause.
			which, trigger := slowed(ctx, a, b)
			other := map[string]string{"a": "b", "b": "a"}[which.GetName()]
			Expect(trigger).To(ContainSubstring("related: Secret " + p.Namespace + "/from-" + other + " changed"))
			Eventually(func() int { return min(len(p.Pauses(a)), len(p.Pauses(b))) }).Should(BeNumerically(">", unpaused))
			paused(a)
			paused(b)
		})

		It("are slowed down, where the run changes the CR's own spec", func(ctx context.Context) {
			_, trigger := slowed(ctx, counts)
			Expect(trigger).To(HaveSuffix("changed by its own run"))
		})

		It("wait for their back-off while they fail", func(ctx context.Context) {
			const runs = 5
			// A run that has begun when the spec is put right below would write the spec that it
			// began with: what follows happens in the pause after a run.
			already, err := p.Failed(fails)()
			Expect(err).NotTo(HaveOccurred())
			Eventually(p.Failed(fails)).Should(BeNumerically(">", max(runs, already)))
			pauses := p.Pauses(fails)
			Expect(len(pauses)).To(BeNumerically(">=", runs))
			for i, least := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second} {
				Expect(pauses[i]).To(BeNumerically(">=", least), "pause %d of %v", i+1, pauses)
			}

			By("running at once for a write by another client")
			before, err := p.Runs(fails)()
			Expect(err).NotTo(HaveOccurred())
			patch(ctx, fails.Object, `{"spec": {"fails": null, "count": null}}`)
			Eventually(p.Condition(fails, "Successful")).WithContext(ctx).Should(HaveField("Status", "True"))
			Expect(p.Runs(fails)()).To(BeNumerically("<=", before+2))
		})
	})
})
