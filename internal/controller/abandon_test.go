package controller

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

const abandonAnnotation = watches.AnsibleAnnotations + abandonSuffix

var givenUp = withAnnotations(map[string]string{abandonAnnotation: "true"})

func TestWhoIsAbandoned(t *testing.T) {
	watch := finalizerWatch()
	ours := withFinalizers(ourFinalizer)
	for name, test := range map[string]struct {
		cr    *unstructured.Unstructured
		state known
		want  step
	}{
		"a CR that is being deleted":                       {widget(ours, givenUp, deleting), known{}, abandon},
		"even if its last result is not written yet":       {widget(ours, givenUp, deleting), known{state: state{unwritten: true}}, abandon},
		"not one that nobody deletes":                      {widget(ours, givenUp), known{}, run},
		"not one that others hold":                         {widget(withFinalizers("x.io/y"), givenUp, deleting), known{}, ignore},
		"not one that says something else than true":       {widget(ours, withAnnotations(map[string]string{abandonAnnotation: "1"}), deleting), known{}, finalize},
		"the annotation alone is no reason for a run":      {widget(ours, givenUp), known{state: state{version: versionOf(&watch, widget(ours)), last: &conclusion{}}}, upToDate},
		"and if it goes, a finalizer's pause is not ended": {widget(ours, deleting), known{state: state{version: versionOf(&watch, widget(ours, deleting)), last: &conclusion{}}}, upToDate},
	} {
		t.Run(name, func(t *testing.T) {
			a := test.state.attempt(&watch, test.cr)
			wantEqual(t, test.want, decide(&a.observation, &a.state, a.state.due).step)
		})
	}
}

func wantAbandoned(t *testing.T, b *bench) {
	t.Helper()
	if err := b.client.Get(t.Context(), request.NamespacedName, widget()); !apierrors.IsNotFound(err) {
		t.Errorf("want it gone, got %v", err)
	}
	var got []string
	for _, event := range b.events() {
		if strings.Contains(event, eventAbandoned) {
			got = append(got, event)
		}
	}
	if len(got) != 1 || !strings.HasPrefix(got[0], "Warning FinalizerAbandoned The finalizer is removed, because the annotation abandon is set: the finalizer's content did not succeed") {
		t.Errorf("want one Event that says what stays, got %q", got)
	}
}

func TestAnAbandonedCRGoesWithoutARun(t *testing.T) {
	b := newBench(t, finalizerWatch(), widget(withFinalizers(ourFinalizer), givenUp, deleting), interceptor.Funcs{})
	b.mustReconcile()
	wantEqual(t, 0, len(b.runner.specs))
	wantAbandoned(t, b)
}

func TestAFinalizerThatFailsIsAbandonedBeforeItsPauseIsOver(t *testing.T) {
	b := newBench(t, finalizerWatch(), widget(withFinalizers(ourFinalizer), deleting), interceptor.Funcs{})
	b.runner.run = fail
	b.mustReconcile()
	b.annotate(abandonAnnotation, "true")
	b.mustReconcile()
	wantEqual(t, 1, len(b.runner.specs))
	wantAbandoned(t, b)
}

func TestAFinalizerThatRunsIsEndedWhenItsCRIsAbandoned(t *testing.T) {
	b := newBench(t, finalizerWatch(), widget(withFinalizers(ourFinalizer), deleting), interceptor.Funcs{})
	b.runner.run = func(ctx context.Context, _ runner.Spec) runner.Result {
		before := b.stored()
		b.annotate(abandonAnnotation, "true")
		q := priorityqueue.New[reconcile.Request]("test")
		defer q.ShutDown()
		b.handler().Update(ctx, crUpdated{ObjectOld: before, ObjectNew: b.stored()}, q)
		if context.Cause(ctx) != errAbandoned { //nolint:errorlint // A cause is compared by identity.
			t.Errorf("the run goes on: %v", context.Cause(ctx))
		}
		wantEqual(t, 1, q.Len())
		return runner.Result{Outcome: content.Outcome{Verdict: content.Canceled}}
	}
	wantEqual(t, immediately, b.mustReconcile().RequeueAfter)
	b.mustReconcile()
	wantAbandoned(t, b)
}

// keeping is content that knows what is left of a CR that is gone.
type keeping struct{ content.Engine }

type kept struct {
	content.Work
	gone bool
}

func (e keeping) Prepare(ctx context.Context, r content.Request) (content.Work, *content.Outcome) {
	work, refusal := e.Engine.Prepare(ctx, r)
	return kept{work, r.Gone}, refusal
}

func (k kept) Abandon(context.Context, content.Job) string {
	if k.gone {
		return "a Widget"
	}
	return "not the content's success"
}

func TestWhatStaysOfACRIsNamedOnce(t *testing.T) {
	unserved := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "", 0, true)
	notSelected := apierrors.NewNotFound(schema.GroupResource{}, "")
	notSelected.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: CauseNotSelected}}
	for why, test := range map[string]struct {
		annotate []func(*unstructured.Unstructured)
		notFound error
		want     int
	}{
		"somebody has removed the finalizer": {nil, nil, 1},
		"the kind is not served":             {nil, unserved, 0},
		"another shard has it now":           {nil, notSelected, 0},
		"the CR was abandoned":               {[]func(*unstructured.Unstructured){givenUp}, nil, 0},
	} {
		t.Run(why, func(t *testing.T) {
			watch := finalizerWatch()
			watch.Custom = &watches.ContentKind{TracksObjects: true, AnnotationPrefix: watches.AnsibleAnnotations}
			var notFound error
			b := newBench(t, watch, widget(append(test.annotate, withFinalizers(ourFinalizer), deleting)...), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
					if notFound != nil {
						return notFound
					}
					return c.Get(ctx, key, into, opts...)
				},
			})
			b.Content = keeping{b.Content}
			b.runner.run = fail
			b.mustReconcile()
			if test.annotate == nil {
				cr := b.stored()
				cr.SetFinalizers(nil)
				if err := b.client.Update(t.Context(), cr); err != nil {
					t.Fatal(err)
				}
			}
			notFound = test.notFound
			b.mustReconcile()
			b.mustReconcile()
			named := 0
			for _, event := range b.events() {
				if strings.HasPrefix(event, "Warning FinalizerAbandoned The resource was deleted") && strings.HasSuffix(event, ": a Widget") {
					named++
				}
			}
			wantEqual(t, test.want, named)
		})
	}
}

// A webhook that refuses every status must not hold a CR that is given up.
func TestAnAbandonedCRGoesAlthoughItsStatusCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		var b *bench
		b = newBench(t, finalizerWatch(), widget(withFinalizers(ourFinalizer), deleting), interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				if tries++; tries == 1 {
					return c.SubResource(sub).Patch(ctx, obj, patch, opts...) // That of the start.
				}
				if tries == 20 {
					b.annotate(abandonAnnotation, "true")
				}
				return apierrors.NewInternalError(errNotNow)
			},
		})
		b.runner.run = fail
		wantEqual(t, immediately, b.mustReconcile().RequeueAfter)
		b.mustReconcile()
		wantEqual(t, 20, tries)
		wantAbandoned(t, b)
	})
}

func TestAnAbandonedCRGoesThoughItsContentRefusesIt(t *testing.T) {
	b := newBench(t, finalizerWatch(), widget(withFinalizers(ourFinalizer), givenUp, deleting), interceptor.Funcs{})
	b.Content = preparing{b.Content, func(context.Context) (content.Work, *content.Outcome) {
		return nil, content.Refusal(content.ReasonInvalidSpec, errors.New("no size"))
	}}
	b.mustReconcile()
	wantAbandoned(t, b)
}

func TestASuccessIsNoAbandonment(t *testing.T) {
	b := newBench(t, finalizerWatch(), widget(withFinalizers(ourFinalizer), deleting), interceptor.Funcs{})
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		b.annotate(abandonAnnotation, "true") // Too late to end the run.
		return succeed(ctx, spec)
	}
	b.mustReconcile()
	wantEqual(t, []string{"Normal Finalized The finalizer's run succeeded"}, b.events())
}

// What a finalizer's run creates belongs to a CR that is going.
func TestWhatAFinalizersRunCreatesIsLogged(t *testing.T) {
	for name, test := range map[string]struct {
		cr   *unstructured.Unstructured
		want bool
	}{
		"of a CR that is being deleted": {widget(withFinalizers(ourFinalizer), deleting), true},
		"not of another":                {widget(withFinalizers(ourFinalizer)), false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, finalizerWatch(), test.cr, interceptor.Funcs{})
			b.Writers = NewWriters()
			b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
				for range 2 * maxCreated {
					b.Writers.Created("uid-1", "ConfigMap ns/backup")
				}
				return succeed(ctx, spec)
			}
			var lines strings.Builder
			ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { lines.WriteString(args + "\n") }, funcr.Options{}))
			if _, err := b.Reconcile(ctx, request); err != nil {
				t.Fatal(err)
			}
			wantEqual(t, test.want, strings.Contains(lines.String(), `"objects"=["ConfigMap ns/backup"`))
			wantEqual(t, []string(nil), b.Writers.takeCreated("uid-1"))
		})
	}
}
