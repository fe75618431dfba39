package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// fed is content whose values functions make. It is the work of each CR, too.
type fed struct {
	manifests

	values  string // their digest
	refuses *content.Outcome
	// prepares is called by each Prepare, and may be nil.
	prepares       func(ctx context.Context)
	prepared, runs int
}

func (f *fed) ValuesDigest() string { return f.values }

func (f *fed) Prepare(ctx context.Context, _ content.Request) (content.Work, *content.Outcome) {
	f.prepared++
	if f.prepares != nil {
		f.prepares(ctx)
	}
	return f, f.refuses
}

func (f *fed) Run(ctx context.Context, _ content.Job) content.Result {
	f.runs++
	return content.ResultOf(ctx, nil)
}

// fedBench is a manager whose functions make the values of the CR.
func fedBench(t *testing.T, watch watches.Watch, cr *unstructured.Unstructured, f *fed) *bench {
	t.Helper()
	b := newBench(t, watch, cr, interceptor.Funcs{})
	b.Content, b.Translates = f, true
	return b
}

// What functions read may change while no manager runs.
func TestARestartWithFunctionsThatMakeValues(t *testing.T) {
	const digest = "of the values"
	pausing := plainWatch()
	pausing.Paused = func(*unstructured.Unstructured) bool { return true }
	for why, test := range map[string]struct {
		watch          watches.Watch
		after          fed
		prepared, runs int
	}{
		"with the same values it rests":            {plainWatch(), fed{values: digest}, 1, 0},
		"with others it runs, prepared once":       {plainWatch(), fed{values: "of others"}, 1, 1},
		"with unknown ones it runs":                {plainWatch(), fed{}, 1, 1},
		"it is refused where the values are wrong": {plainWatch(), fed{refuses: content.Refusal(content.ReasonInvalidSpec, errors.New("no"))}, 1, 0},
		"no function is called while it is paused": {pausing, fed{values: "of others"}, 0, 0},
		"nor for a resource that is not selected":  {selectorWatch(), fed{values: "of others"}, 0, 0},
	} {
		t.Run(why, func(t *testing.T) {
			before := &fed{values: digest}
			first := fedBench(t, plainWatch(), widget(), before)
			first.mustReconcile()
			wantEqual(t, 1, before.runs)
			cr := first.stored()
			cr.SetResourceVersion("")
			b := fedBench(t, test.watch, cr, &test.after)
			b.mustReconcile()
			wantEqual(t, test.runs, test.after.runs)
			wantEqual(t, test.prepared, test.after.prepared)
			if test.after.refuses != nil {
				wantEqual(t, "True/InvalidSpec", b.conditions()["Failure"])
			}
		})
	}
}

// A function that waits for something must not hold up the end of the manager, or go on without
// the lease, whose loss stops the attempts too.
func TestWhatIsBeingPreparedEndsWithTheManager(t *testing.T) {
	for why, cr := range map[string]*unstructured.Unstructured{
		"a run":                         widget(),
		"a finalizer's":                 widget(withFinalizers(ourFinalizer), deleting),
		"that of a CR that is given up": widget(withFinalizers(ourFinalizer), deleting, givenUp),
	} {
		t.Run(why, func(t *testing.T) {
			f := &fed{refuses: content.Refusal(content.ReasonInvalidSpec, errors.New("context canceled"))}
			b := fedBench(t, finalizerWatch(), cr, f)
			f.prepares = func(ctx context.Context) {
				b.Attempts.Stop()
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
					t.Error("it goes on")
				}
			}
			_, _ = b.reconcile()
			wantEqual(t, 0, f.runs)
			if abandoned(&b.Watch, cr) {
				if err := b.client.Get(t.Context(), request.NamespacedName, widget()); !apierrors.IsNotFound(err) {
					t.Errorf("want it gone, got %v", err)
				}
			} else if len(b.conditions()) > 0 {
				t.Errorf("the status says %v", b.conditions())
			}
		})
	}
}
