package fire

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

// rival writes to a CR's annotations and, as a controller of its own, to a
// condition and a key of its status.
type rival struct {
	cr   *unstructured.Unstructured
	stop context.CancelFunc
	done chan struct{}
	// annotation and condition are the last values that the API server accepted.
	annotation, condition string
	writes, lost          int
	took                  time.Duration
	err                   error
}

// startRival writes at the pace until the rival is ended.
func startRival(ctx context.Context, cr *unstructured.Unstructured, pace time.Duration) *rival {
	ctx, stop := context.WithCancel(ctx)
	r := &rival{cr: cr.DeepCopy(), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		began := time.Now()
		ticks := time.NewTicker(pace)
		defer ticks.Stop()
		for n := 0; r.err == nil; n++ {
			select {
			case <-ctx.Done():
				r.took = time.Since(began)
				return
			case <-ticks.C:
				r.write(context.WithoutCancel(ctx), n)
			}
		}
	}()
	return r
}

func (r *rival) write(ctx context.Context, n int) {
	value := fmt.Sprint(n)
	if n%2 == 0 {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"rival":%q}}}`, value)
		r.err = k8s.Patch(ctx, r.cr.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
		r.annotation = value
		r.writes++
		return
	}
	current := r.cr.DeepCopy()
	if r.err = k8s.Get(ctx, client.ObjectKeyFromObject(r.cr), current); r.err != nil {
		return
	}
	setRival(current, value)
	err := k8s.Status().Update(ctx, current)
	if apierrors.IsConflict(err) {
		r.lost++ // Somebody was faster; there will be another time.
		return
	}
	r.err = err
	r.condition = value
	r.writes++
}

// setRival puts the rival's condition before all others, and its key.
func setRival(cr *unstructured.Unstructured, value string) {
	list, _, _ := unstructured.NestedSlice(cr.Object, "status", "conditions")
	own := map[string]any{"type": "Rival", "status": "True", "message": value}
	others := []any{own}
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] != "Rival" {
			others = append(others, item)
		}
	}
	_ = unstructured.SetNestedSlice(cr.Object, others, "status", "conditions")
	_ = unstructured.SetNestedField(cr.Object, value, "status", "rival")
}

// end stops the rival.
func (r *rival) end() {
	GinkgoHelper()
	r.stop()
	<-r.done
	Expect(r.err).NotTo(HaveOccurred())
}

var _ = Describe("a rival that writes 50 times a second", func() {
	It("keeps no result away and loses nothing of its own", func(ctx context.Context) { fight(ctx, time.Second/50, 5) }, SpecTimeout(2*patience))
})

// fight lets a rival write at a pace while so many generations of one object run,
// or more, until the two have met: until the rival was faster than the manager.
func fight(ctx context.Context, pace time.Duration, generations int64) {
	GinkgoHelper()
	b := newBench(ctx)
	cr := b.create(ctx, flame, "fought-over", map[string]any{"hold": "the-fight"})
	r := startRival(ctx, cr, pace)
	defer r.stop()
	b.begun(ctx, cr)
	b.open("the-fight")
	expectSuccess(ctx, cr, 1)
	last := int64(1)
	for generation := int64(2); generation <= generations || b.refused(cr) == 0; generation++ {
		last = generation
		patch := fmt.Sprintf(`{"spec":{"size":%d}}`, generation)
		Expect(k8s.Patch(ctx, cr.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
		expectSuccess(ctx, cr, generation)
	}
	r.end()
	for generation := int64(1); generation <= last; generation++ {
		b.expectRuns(cr, generation, 1)
	}
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(cr), cr)).To(Succeed())
	Expect(cr.GetAnnotations()).To(HaveKeyWithValue("rival", r.annotation))
	Expect(harness.ConditionOf(cr, "Rival").Message).To(Equal(r.condition))
	Expect(cr.Object["status"]).To(HaveKeyWithValue("rival", r.condition))
	AddReportEntry("the fight", fmt.Sprintf("%d writes of the rival in %s, %d of them lost to the manager; %d of the manager's lost to the rival",
		r.writes, r.took.Round(time.Millisecond), r.lost, b.refused(cr)))
}

// refused counts the manager's writes to the object that came too late.
func (b *bench) refused(cr *unstructured.Unstructured) int {
	count := 0
	for _, request := range b.proxy.Journal() {
		if request.Name == cr.GetName() && write(request) != "" && !request.Applied() {
			count++
		}
	}
	return count
}
