package controller

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/internal/watches"
)

func healthBench(t *testing.T) (*bench, *relation) {
	t.Helper()
	watch := plainWatch()
	watch.Health = &watches.Health{}
	b := newBench(t, watch, widget(), interceptor.Funcs{})
	related := &relation{health: Health{Known: true}}
	b.Related = related
	return b, related
}

func (b *bench) ready() string {
	c := status.Read(b.stored(), status.Ready)
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

const (
	readyNow = "True Successful: Last reconciliation succeeded"
	web      = "Deployment web: Available: 1/3"
)

// Ready follows the health of children, without a run.
func TestReadyFollowsTheHealthOfChildren(t *testing.T) {
	b, related := healthBench(t)
	b.mustReconcile()
	wantEqual(t, readyNow, b.ready())

	due := b.clock.Now().Add(10 * time.Second)
	related.health = Health{Known: true, All: []string{web}, Next: due}
	wantEqual(t, 10*time.Second, b.mustReconcile().RequeueAfter)
	wantEqual(t, readyNow, b.ready())

	b.clock.SetTime(due)
	related.health = Health{Known: true, All: []string{web, "Pod a: no", "Pod b: no", "Pod c: no"}, Overdue: []string{web}}
	b.mustReconcile()
	wantEqual(t, "False Unhealthy: "+web, b.ready())
	wantEqual(t, "True/Successful", b.conditions()["Successful"])

	// Another text waits for 10 s, and then it has all children that are not Current.
	wantEqual(t, 10*time.Second, b.mustReconcile().RequeueAfter)
	wantEqual(t, "False Unhealthy: "+web, b.ready())
	b.clock.SetTime(due.Add(10 * time.Second))
	b.mustReconcile()
	wantEqual(t, "False Unhealthy: "+web+"; Pod a: no; Pod b: no; and 1 more", b.ready())

	related.health = Health{Known: true, Uncounted: []string{"ConfigMap (blacklist)"}} // Recovery counts at once.
	b.mustReconcile()
	uncounted := readyNow + "; not watched: ConfigMap (blacklist)"
	wantEqual(t, uncounted, b.ready())
	related.health = Health{Known: true} // As after a restart.
	b.clock.SetTime(due.Add(time.Minute))
	b.mustReconcile()
	wantEqual(t, uncounted, b.ready())
	related.health = Health{Known: true, All: []string{web}, Overdue: []string{web}}
	b.mustReconcile()
	related.health = Health{Known: true}
	b.mustReconcile()
	wantEqual(t, readyNow, b.ready())
	related.health = Health{} // An informer starts again.
	b.mustReconcile()
	wantEqual(t, readyNow, b.ready())
	wantEqual(t, 1, len(b.runner.specs))
}

// What the content found missing counts at once.
func TestReadyNamesMissingObjects(t *testing.T) {
	b, _ := healthBench(t)
	b.mustReconcile()
	b.state().last.Missing = []string{"ConfigMap ns/a"}
	b.mustReconcile()
	wantEqual(t, "False Unhealthy: ConfigMap ns/a: not found", b.ready())
	b.state().last.Missing = nil
	b.mustReconcile()
	wantEqual(t, readyNow, b.ready())
}

// The status shows fields of children, without a run, and without the health of children too.
func TestTheStatusShowsFieldsOfChildren(t *testing.T) {
	b, related := healthBench(t)
	b.Watch.Health = nil
	b.Watch.StatusFrom = map[string]watches.ChildField{"readyReplicas": {Kind: "Deployment", Name: "web", Path: "{.status.readyReplicas}"}}
	shown := func() any { return b.stored().Object["status"].(map[string]any)["readyReplicas"] }
	b.mustReconcile()
	related.shown = map[string]any{"readyReplicas": int64(1)}
	b.mustReconcile()
	wantEqual(t, any(int64(1)), shown())
	related.shown = map[string]any{"readyReplicas": int64(2)}
	pause := b.mustReconcile().RequeueAfter
	wantEqual(t, any(int64(1)), shown())
	b.clock.SetTime(b.clock.Now().Add(pause))
	b.mustReconcile()
	wantEqual(t, any(int64(2)), shown())
	b.clock.SetTime(b.clock.Now().Add(pause))
	related.shown = map[string]any{"readyReplicas": nil}
	b.mustReconcile()
	wantEqual(t, nil, shown())
	wantEqual(t, readyNow, b.ready())
	wantEqual(t, 1, len(b.runner.specs))
}

// A field that the schema drops is written once.
func TestAFieldThatIsDroppedIsNotWrittenAgain(t *testing.T) {
	b, related := healthBench(t)
	b.Watch.StatusFrom = map[string]watches.ChildField{"readyReplicas": {Kind: "Deployment", Name: "web", Path: "{.status.readyReplicas}"}}
	shown := func() any { return b.stored().Object["status"].(map[string]any)["readyReplicas"] }
	b.drops.Store(true)
	b.mustReconcile()
	for _, number := range []int64{1, 2} {
		related.shown = map[string]any{"readyReplicas": number}
		b.clock.SetTime(b.clock.Now().Add(time.Minute))
		b.mustReconcile()
		wantEqual(t, any(number), shown())
		cr := b.stored()
		unstructured.RemoveNestedField(cr.Object, "status", "readyReplicas")
		if err := b.client.Status().Update(t.Context(), cr); err != nil {
			t.Fatal(err)
		}
		b.clock.SetTime(b.clock.Now().Add(time.Minute))
		b.mustReconcile()
		wantEqual(t, nil, shown())
	}
}

// A write that failed is tried again, also where the schema drops fields.
func TestAFieldWhoseWriteFailedIsWrittenAgain(t *testing.T) {
	watch, fails := plainWatch(), false
	watch.StatusFrom = map[string]watches.ChildField{"readyReplicas": {Kind: "Deployment", Name: "web", Path: "{.status.readyReplicas}"}}
	b := newBench(t, watch, widget(), interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		if fails {
			return apierrors.NewConflict(schema.GroupResource{}, "", nil)
		}
		return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
	}})
	related := &relation{health: Health{Known: true}}
	b.Related = related
	b.drops.Store(true)
	b.mustReconcile()
	related.shown, fails = map[string]any{"readyReplicas": int64(1)}, true
	if _, err := b.reconcile(); err == nil {
		t.Error("no error")
	}
	fails = false
	b.clock.SetTime(b.clock.Now().Add(time.Minute))
	b.mustReconcile()
	wantEqual(t, any(int64(1)), b.stored().Object["status"].(map[string]any)["readyReplicas"])
}

// Fields of children are written while the health is not known, and leave Ready as it is. They do not delay
// a look at the health.
func TestFieldsOfChildrenLeaveReadyAlone(t *testing.T) {
	b, related := healthBench(t)
	b.Watch.StatusFrom = map[string]watches.ChildField{"readyReplicas": {Kind: "Deployment", Name: "web", Path: "{.status.readyReplicas}"}}
	b.mustReconcile()
	related.shown = map[string]any{"readyReplicas": int64(1)}
	related.health = Health{Known: true, All: []string{web}, Overdue: []string{web}}
	b.mustReconcile()
	wantEqual(t, "False Unhealthy: "+web, b.ready())
	related.health = Health{}
	related.shown = map[string]any{"readyReplicas": int64(2)}
	b.clock.SetTime(b.clock.Now().Add(time.Minute))
	b.mustReconcile()
	wantEqual(t, "False Unhealthy: "+web, b.ready())

	related.shown = map[string]any{"readyReplicas": int64(3)}
	related.health = Health{Known: true, All: []string{web}, Overdue: []string{web}, Next: b.clock.Now().Add(time.Second)}
	wantEqual(t, time.Second, b.mustReconcile().RequeueAfter)
}

// health.ignore also ignores what is missing.
func TestAMissingObjectMayBeIgnored(t *testing.T) {
	b, _ := healthBench(t)
	b.Watch.Health.Ignore = []watches.KindName{{Kind: "ConfigMap"}}
	b.mustReconcile()
	b.state().last.Missing = []string{"ConfigMap ns/a"}
	b.mustReconcile()
	wantEqual(t, readyNow, b.ready())
}

// A generation is not Ready before its objects are: no pause hides what its run has changed.
func TestANewGenerationIsReadyWithItsChildren(t *testing.T) {
	b, related := healthBench(t)
	related.health = Health{}
	b.mustReconcile()
	wantEqual(t, "Unknown ObservingObjects: The objects of the resource have not been observed since the run", b.ready())
	related.health = Health{Known: true, All: []string{web}}
	b.mustReconcile()
	wantEqual(t, "False Unhealthy: "+web, b.ready())
	wantEqual(t, map[string]string{"Ready": "False/Unhealthy"}, b.kstatus())
	b.mustReconcileDue() // A later run changes nothing of it.
	wantEqual(t, "False Unhealthy: "+web, b.ready())
	related.health = Health{Known: true}
	b.mustReconcile()
	wantEqual(t, readyNow, b.ready())
}

// The health of children says nothing about a generation whose run has failed.
func TestAFailureIsNotHiddenByHealthyChildren(t *testing.T) {
	b, _ := healthBench(t)
	b.runner.run = fail
	b.mustReconcile()
	b.mustReconcile()
	wantEqual(t, "False Failed: no disk", b.ready())
}
