package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/ansible/engine"
	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// These tests put faults between the reconciler and the API server that a real
// one cannot be made to show at will. The real parts are tested in test/contract.

var request = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "w"}}

// runnerFunc is an engine.Runner whose runs come to what it says.
type runnerFunc struct {
	mu      sync.Mutex
	run     func(ctx context.Context, spec runner.Spec) runner.Result
	specs   []runner.Spec
	removed []string
}

func (f *runnerFunc) Run(ctx context.Context, spec runner.Spec, observe func(jobevent.Event)) runner.Result {
	f.mu.Lock()
	f.specs = append(f.specs, spec)
	f.mu.Unlock()
	observe(jobevent.Event{Kind: jobevent.Stats})
	return f.run(ctx, spec)
}

func (f *runnerFunc) Remove(uid string) error {
	f.removed = append(f.removed, uid)
	return nil
}

type accessFunc func(cr *unstructured.Unstructured) ([]byte, func(), error)

func (f accessFunc) Grant(cr *unstructured.Unstructured, _ string, _ map[string]string) (Grant, error) {
	kubeconfig, revoke, err := f(cr)
	return Grant{Kubeconfig: kubeconfig, Revoke: revoke}, err
}

// journal is an Observer that keeps what it saw.
type journal struct {
	content.ObserverDefaults

	lines, forgotten []string
}

func (j *journal) Forget(watch schema.GroupVersionKind, object string) {
	j.forgotten = append(j.forgotten, watch.String()+" "+object)
}

func (j *journal) RunStarted(run content.Run) {
	j.lines = append(j.lines, fmt.Sprintf("started %s generation %d: %s", run.Object, run.Generation, run.Trigger))
}

func (j *journal) JobEvent(_ content.Run, event jobevent.Event) {
	j.lines = append(j.lines, string(event.Kind))
}

func (j *journal) RunEnded(_ content.Run, result content.Result, _ time.Duration) {
	j.lines = append(j.lines, "ended "+string(result.Outcome.Verdict))
}

// bench is a reconciler with its surroundings.
type bench struct {
	*Reconciler
	t        *testing.T
	engine   *engine.Engine
	runner   *runnerFunc
	journal  *journal
	recorder *events.FakeRecorder
	revoked  int
	client   client.WithWatch
	clock    *testclock.FakePassiveClock
}

func succeed(context.Context, runner.Spec) runner.Result {
	return runner.Result{
		Outcome: content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful},
		Summary: jobevent.Summary{StatsSeen: true, OK: 1, Hosts: 1},
	}
}

func fail(context.Context, runner.Spec) runner.Result {
	return runner.Result{
		Outcome: content.Outcome{Verdict: content.Failed, Reason: content.ReasonFailed, Message: "no disk"},
		Summary: jobevent.Summary{StatsSeen: true, Failures: 1, Hosts: 1},
	}
}

// newBench starts from the CR and puts faults before the API.
func newBench(t *testing.T, watch watches.Watch, cr *unstructured.Unstructured, faults interceptor.Funcs) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(watch.GVK, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: "WidgetList"}, &unstructured.UnstructuredList{})
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(widget())
	if cr != nil {
		builder = builder.WithObjects(cr)
	}
	b := &bench{
		t: t, runner: &runnerFunc{run: succeed}, journal: &journal{}, recorder: events.NewFakeRecorder(20),
		client: builder.Build(),
	}
	b.clock = testclock.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c := interceptor.NewClient(b.client, faults)
	b.engine = &engine.Engine{Watch: watch, Runner: b.runner, Observers: []engine.Observer{b.journal}, Defaults: engine.Defaults{Verbosity: 2, MaxVerbosity: 2}}
	b.Reconciler = &Reconciler{
		Watch: watch, Client: c, Reader: c, Content: b.engine, Recorder: b.recorder, Attempts: NewAttempts(), Slots: slots.New(1), Digest: "d1",
		Observers: []content.Observer{b.journal},
		Defaults:  Defaults{ReconcilePeriod: time.Hour, MaxBackoff: time.Minute},
		Access: accessFunc(func(*unstructured.Unstructured) ([]byte, func(), error) {
			return []byte("config"), func() { b.revoked++ }, nil
		}),
		Clock: b.clock,
	}
	return b
}

func (b *bench) reconcile() (reconcile.Result, error) {
	b.t.Helper()
	return b.Reconcile(b.t.Context(), request)
}

func (b *bench) mustReconcile() reconcile.Result {
	b.t.Helper()
	result, err := b.reconcile()
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// mustReconcileDue reconciles when the time of the next run has come.
func (b *bench) mustReconcileDue() reconcile.Result {
	b.t.Helper()
	due := b.state().due
	if due.IsZero() {
		b.t.Fatal("no run is due, ever")
	}
	b.clock.SetTime(due)
	return b.mustReconcile()
}

// annotate gives the stored CR an annotation, "" for none.
func (b *bench) annotate(name, value string) {
	b.t.Helper()
	cr := b.stored()
	cr.SetAnnotations(map[string]string{name: value})
	if value == "" {
		cr.SetAnnotations(nil)
	}
	if err := b.client.Update(b.t.Context(), cr); err != nil {
		b.t.Fatal(err)
	}
}

// state and mailbox are those of the CR.
func (b *bench) state() *state     { return &b.states.of(request.NamespacedName).state }
func (b *bench) mailbox() *mailbox { return &b.states.of(request.NamespacedName).mailbox }

// handler tells the bench of events.
func (b *bench) handler() *handler { return &handler{watch: &b.Watch, states: &b.states} }

func (b *bench) stored() *unstructured.Unstructured {
	b.t.Helper()
	cr := widget()
	if err := b.client.Get(b.t.Context(), request.NamespacedName, cr); err != nil {
		b.t.Fatal(err)
	}
	return cr
}

// conditions returns "status/reason" by type of the stored CR.
func (b *bench) conditions() map[string]string {
	b.t.Helper()
	list, _, _ := unstructured.NestedSlice(b.stored().Object, "status", "conditions")
	found := map[string]string{}
	for _, item := range list {
		c := item.(map[string]any)
		found[c["type"].(string)] = c["status"].(string) + "/" + c["reason"].(string)
	}
	return found
}

func (b *bench) events() []string {
	var got []string
	for {
		select {
		case e := <-b.recorder.Events:
			got = append(got, e)
		default:
			return got
		}
	}
}

func wantEqual(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestACreatedCRRunsAndReports(t *testing.T) {
	b := newBench(t, finalizerWatch(), widget(), interceptor.Funcs{})
	atRun := map[string]string{}
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		atRun = b.conditions()
		return succeed(ctx, spec)
	}
	result := b.mustReconcile()
	wantEqual(t, map[string]string{"Running": "True/Running", "Successful": "False/Running", "Ready": "Unknown/Running", "Reconciling": "True/Running"}, atRun)
	wantEqual(t, map[string]string{"Running": "True/Successful", "Successful": "True/Successful", "Failure": "False/Successful", "Ready": "True/Successful"}, b.conditions())
	wantEqual(t, time.Hour, result.RequeueAfter)
	wantEqual(t, []string{ourFinalizer}, b.stored().GetFinalizers())
	wantEqual(t, []string{"started ns/w generation 1: created", "playbook_on_stats", "ended Succeeded"}, b.journal.lines)
	wantEqual(t, []string{"Normal Succeeded The last reconciliation succeeded"}, b.events())
	wantEqual(t, 1, b.revoked)
	spec := b.runner.specs[0]
	wantEqual(t, []string{"uid-1", "widget", "/roles", "config"}, []string{spec.UID, spec.Role, spec.RolesPath, string(spec.Kubeconfig)})
	if !strings.HasPrefix(string(spec.ExtraVars), "\t\n{") || !strings.Contains(string(spec.ExtraVars), `"size":1`) {
		t.Errorf("extra vars: %q", spec.ExtraVars)
	}
}

func TestTheFirstRunOfAKindWithoutGenerationsIsNoRepetition(t *testing.T) {
	b := newBench(t, plainWatch(), widget(withGeneration(0)), interceptor.Funcs{})
	atRun := map[string]string{}
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		atRun = b.conditions()
		return succeed(ctx, spec)
	}
	b.mustReconcile()
	wantEqual(t, map[string]string{"Running": "True/Running", "Successful": "False/Running", "Ready": "Unknown/Running", "Reconciling": "True/Running"}, atRun)
	b.mustReconcileDue()
	wantEqual(t, "started ns/w generation 0: created", b.journal.lines[0])
	wantEqual(t, "started ns/w generation 0: period", b.journal.lines[3])
	wantEqual(t, "True/Successful", atRun["Successful"])
}

func TestEventsTellOfChangesOnly(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	steps := []struct {
		run  func(context.Context, runner.Spec) runner.Result
		want []string
	}{
		{succeed, []string{"Normal Succeeded The last reconciliation succeeded"}},
		{succeed, nil},
		{fail, []string{"Warning Failed no disk"}},
		{fail, nil},
		{succeed, []string{"Normal Succeeded The last reconciliation succeeded"}},
	}
	for i, step := range steps {
		b.runner.run = step.run
		if i == 0 {
			b.mustReconcile()
		} else {
			b.mustReconcileDue()
		}
		wantEqual(t, step.want, b.events())
	}
}

func TestFailuresBackOffUntilTheSpecChanges(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.runner.run = fail
	pauses := []time.Duration{b.mustReconcile().RequeueAfter}
	for range 2 {
		pauses = append(pauses, b.mustReconcileDue().RequeueAfter)
	}
	changed := b.stored()
	changed.SetGeneration(2)
	if err := b.client.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	pauses = append(pauses, b.mustReconcile().RequeueAfter)
	wantEqual(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, time.Second}, pauses)
}

// An annotation runs the content at once, but mends nothing in it.
func TestAnAnnotationDoesNotResetTheBackOff(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.runner.run = fail
	pauses := []time.Duration{b.mustReconcile().RequeueAfter}
	for _, value := range []string{"first", "second"} {
		b.annotate(requestedAnnotation, value)
		pauses = append(pauses, b.mustReconcile().RequeueAfter)
	}
	wantEqual(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, pauses)
	wantEqual(t, "started ns/w generation 1: annotation", b.journal.lines[3])
}

func TestFailuresBackOffUntilTheContentChangesWhereThereAreNoGenerations(t *testing.T) {
	b := newBench(t, plainWatch(), widget(withGeneration(0)), interceptor.Funcs{})
	b.runner.run = fail
	first, second := b.mustReconcile(), b.mustReconcileDue()
	changed := b.stored()
	changed.Object["data"] = map[string]any{"key": "value"}
	if err := b.client.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	third := b.mustReconcile()
	wantEqual(t, []time.Duration{time.Second, 2 * time.Second, time.Second}, []time.Duration{first.RequeueAfter, second.RequeueAfter, third.RequeueAfter})
}

func TestAPause(t *testing.T) {
	off := withAnnotations(map[string]string{pausedAnnotation: "true"})
	t.Run("keeps runs and the finalizer away, and says so once", func(t *testing.T) {
		b := newBench(t, finalizerWatch(), widget(off), interceptor.Funcs{})
		wantEqual(t, reconcile.Result{}, b.mustReconcile())
		wantEqual(t, map[string]string{"Running": "False/Paused", "Ready": "False/Paused"}, b.conditions())
		before := b.stored()
		wantEqual(t, reconcile.Result{}, b.mustReconcile())
		wantEqual(t, before.GetResourceVersion(), b.stored().GetResourceVersion())
		wantEqual(t, 0, len(b.runner.specs)+len(before.GetFinalizers())+len(b.events()))
	})
	t.Run("takes no slot, and ends with a run, even of a version that ran before it", func(t *testing.T) {
		b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
		b.mustReconcile()
		free := b.Slots
		b.Slots = full(t)
		b.annotate(pausedAnnotation, "true")
		b.mustReconcile()
		wantEqual(t, "False/Paused", b.conditions()["Running"])
		b.Slots = free
		b.annotate(pausedAnnotation, "")
		b.mustReconcile()
		wantEqual(t, map[string]string{"Running": "True/Successful", "Successful": "True/Successful", "Failure": "False/Successful", "Ready": "True/Successful"}, b.conditions())
		wantEqual(t, 2, len(b.runner.specs))
	})
	t.Run("keeps a run away that was decided before it", func(t *testing.T) {
		reads := 0
		var b *bench
		b = newBench(t, plainWatch(), widget(), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				err := c.Get(ctx, key, obj, opts...)
				if reads++; reads == 1 { // The decision in the slot stands.
					b.annotate(pausedAnnotation, "true")
				}
				return err
			},
		})
		wantEqual(t, immediately, b.mustReconcile().RequeueAfter)
		wantEqual(t, reconcile.Result{}, b.mustReconcile())
		wantEqual(t, map[string]string{"Running": "False/Paused", "Ready": "False/Paused"}, b.conditions())
		wantEqual(t, 0, len(b.runner.specs))
		b.annotate(pausedAnnotation, "")
		b.mustReconcile()
		wantEqual(t, 1, len(b.runner.specs))
	})
	t.Run("ends no current run", func(t *testing.T) {
		b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
		b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
			paused := b.stored()
			off(paused)
			q := priorityqueue.New[reconcile.Request]("test")
			defer q.ShutDown()
			b.handler().Update(ctx, crUpdated{ObjectOld: b.stored(), ObjectNew: paused}, q)
			if ctx.Err() != nil {
				t.Error("the run was ended")
			}
			return succeed(ctx, spec)
		}
		b.mustReconcile()
		wantEqual(t, "True/Successful", b.conditions()["Successful"])
	})
	t.Run("of a CR that is deleted keeps no finalizer from running", func(t *testing.T) {
		b := newBench(t, finalizerWatch(), widget(off, deleting, withFinalizers(ourFinalizer)), interceptor.Funcs{})
		b.mustReconcile()
		wantEqual(t, "bye", b.runner.specs[0].Role)
	})
	t.Run("with another value than true or false runs nothing", func(t *testing.T) {
		b := newBench(t, plainWatch(), widget(withAnnotations(map[string]string{pausedAnnotation: "yes"})), interceptor.Funcs{})
		b.mustReconcile()
		wantEqual(t, "True/InvalidAnnotation", b.conditions()["Failure"])
		wantEqual(t, 0, len(b.runner.specs))
	})
}

func TestARefusedCRRunsNothingAndGetsNoFinalizer(t *testing.T) {
	for name, change := range map[string]func(*unstructured.Unstructured){
		"InvalidSpec": func(cr *unstructured.Unstructured) {
			cr.Object["spec"] = map[string]any{"ansible_python_interpreter": "/bin/sh"}
		},
		"InvalidAnnotation": withAnnotations(map[string]string{periodAnnotation: "often"}),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, finalizerWatch(), widget(change), interceptor.Funcs{})
			result := b.mustReconcile()
			wantEqual(t, map[string]string{"Running": "False/Failed", "Successful": "False/Failed", "Failure": "True/" + name, "Ready": "False/" + name, "Stalled": "True/" + name}, b.conditions())
			wantEqual(t, time.Duration(0), result.RequeueAfter)
			wantEqual(t, 0, len(b.runner.specs)+len(b.stored().GetFinalizers()))
			before := b.stored().GetResourceVersion()
			b.mustReconcile()
			wantEqual(t, before, b.stored().GetResourceVersion())
		})
	}
}

func TestFinalizer(t *testing.T) {
	doomed := func(t *testing.T, finalizers ...string) *bench {
		t.Helper()
		return newBench(t, finalizerWatch(), widget(deleting, withFinalizers(finalizers...)), interceptor.Funcs{})
	}
	t.Run("goes with its successful run, and the object with it", func(t *testing.T) {
		b := doomed(t, ourFinalizer)
		b.mustReconcile()
		wantEqual(t, "bye", b.runner.specs[0].Role)
		err := b.client.Get(t.Context(), request.NamespacedName, widget())
		if !apierrors.IsNotFound(err) {
			t.Errorf("want the object gone, got %v", err)
		}
		wantEqual(t, []string{"Normal Finalized The finalizer's run succeeded"}, b.events())
	})
	t.Run("stays when its run fails, and says so", func(t *testing.T) {
		b := doomed(t, ourFinalizer)
		b.runner.run = fail
		result := b.mustReconcile()
		wantEqual(t, []string{ourFinalizer}, b.stored().GetFinalizers())
		wantEqual(t, "True/Failed", b.conditions()["Failure"])
		wantEqual(t, time.Second, result.RequeueAfter)
	})
	t.Run("leaves those of other clients", func(t *testing.T) {
		b := doomed(t, "x.io/y", ourFinalizer)
		b.mustReconcile()
		wantEqual(t, []string{"x.io/y"}, b.stored().GetFinalizers())
		wantEqual(t, "True/Successful", b.conditions()["Successful"])
	})
	t.Run("is not kept by a spec or an annotation that would be refused", func(t *testing.T) {
		b := newBench(t, finalizerWatch(), widget(deleting, withFinalizers(ourFinalizer), withAnnotations(map[string]string{verbosityAnnotation: "x"}),
			func(cr *unstructured.Unstructured) { cr.Object["spec"] = map[string]any{"ansible_host": "x"} }), interceptor.Funcs{})
		b.mustReconcile()
		wantEqual(t, 1, len(b.runner.specs))
		var names map[string]any
		if err := json.Unmarshal(b.runner.specs[0].ExtraVars, &names); err != nil {
			t.Fatal(err)
		}
		if _, reached := names["ansible_host"]; reached {
			t.Errorf("a refused name reached the run: %s", b.runner.specs[0].ExtraVars)
		}
	})
}

// failing returns faults that make status writes fail while they last.
func failing(broken *bool, with error) interceptor.Funcs {
	return interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if *broken {
				return with
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	}
}

func TestAResultThatCannotBeWrittenIsWrittenLater(t *testing.T) {
	broken := false
	b := newBench(t, plainWatch(), widget(), failing(&broken, apierrors.NewForbidden(schema.GroupResource{}, "w", errors.New("not now"))))
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		broken = true
		return fail(ctx, spec)
	}
	if _, err := b.reconcile(); err == nil {
		t.Fatal("want the API server's error")
	}
	broken = false
	wantEqual(t, immediately, b.mustReconcile().RequeueAfter)
	wantEqual(t, "True/Failed", b.conditions()["Failure"])
	wantEqual(t, time.Second, b.mustReconcile().RequeueAfter)
	wantEqual(t, 1, len(b.runner.specs))
	wantEqual(t, []string{"Warning Failed no disk"}, b.events())
	b.runner.run = succeed
	b.mustReconcileDue()
	wantEqual(t, 2, len(b.runner.specs))
}

func TestNothingRunsWhenItsStartCannotBeReported(t *testing.T) {
	broken := true
	b := newBench(t, plainWatch(), widget(), failing(&broken, apierrors.NewForbidden(schema.GroupResource{}, "w", errors.New("no right"))))
	if _, err := b.reconcile(); err == nil {
		t.Error("want the API server's error")
	}
	wantEqual(t, 0, len(b.runner.specs))
	wantEqual(t, 1, b.revoked)
}

func TestAStatusThatNobodyTakesDoesNotStopTheRuns(t *testing.T) {
	for name, refusal := range map[string]error{
		"the schema refuses conditions":      schemaError(),
		"the kind lost its status meanwhile": apierrors.NewNotFound(schema.GroupResource{}, "w"),
	} {
		t.Run(name, func(t *testing.T) {
			broken := true
			b := newBench(t, plainWatch(), widget(), failing(&broken, refusal))
			result := b.mustReconcile()
			wantEqual(t, 1, len(b.runner.specs))
			wantEqual(t, time.Hour, result.RequeueAfter)
		})
	}
}

// schemaError is what the API server says of a status that the kind's schema refuses.
func schemaError() error {
	at := field.NewPath("status", "conditions").Index(0).Child("ansibleResult")
	return apierrors.NewInvalid(schema.GroupKind{Group: "g.io", Kind: "Widget"}, "w", field.ErrorList{field.TypeInvalid(at, "object", "must be of type string")})
}

// policyError is what it says of one that a ValidatingAdmissionPolicy denies.
func policyError() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Details: &metav1.StatusDetails{Group: "g.io", Kind: "widgets", Name: "w", Causes: []metav1.StatusCause{{Message: "not now"}}},
	}}
}

func TestAResultThatAPolicyRefusesIsWrittenOnceItIsNot(t *testing.T) {
	broken := false
	b := newBench(t, plainWatch(), widget(), failing(&broken, policyError()))
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		broken = true
		return succeed(ctx, spec)
	}
	for _, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		wantEqual(t, pause, b.mustReconcile().RequeueAfter)
	}
	wantEqual(t, "True/Running", b.conditions()["Running"])
	broken = false
	wantEqual(t, immediately, b.mustReconcile().RequeueAfter)
	wantEqual(t, "True/Successful", b.conditions()["Successful"])
	wantEqual(t, time.Hour, b.mustReconcile().RequeueAfter)
	wantEqual(t, 1, len(b.runner.specs))
}

func TestAResultThatTheSchemaRefusesEndsRunningAllTheSame(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if data, err := patch.Data(obj); err != nil || strings.Contains(string(data), "ansibleResult") {
				return errors.Join(err, schemaError())
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
	wantEqual(t, time.Hour, b.mustReconcile().RequeueAfter)
	wantEqual(t, map[string]string{"Running": "False/StatusRefused", "Successful": "False/Running", "Ready": "False/StatusRefused", "Stalled": "True/StatusRefused"}, b.conditions())
	b.mustReconcileDue()
	wantEqual(t, 2, len(b.runner.specs))
}

func TestConflictsNeverCostASecondRun(t *testing.T) {
	conflicts := 3
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if conflicts > 0 {
				conflicts--
				other := obj.DeepCopyObject().(*unstructured.Unstructured)
				other.SetLabels(map[string]string{"written": fmt.Sprint(conflicts)})
				if err := c.Update(ctx, other); err != nil {
					return err
				}
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
	b.mustReconcile()
	wantEqual(t, 1, len(b.runner.specs))
	wantEqual(t, "True/Successful", b.conditions()["Successful"])
	wantEqual(t, "0", b.stored().GetLabels()["written"])
}

func TestASuccessorNeverGetsItsPredecessorsResult(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		if err := b.client.Delete(ctx, b.stored()); err != nil {
			t.Error(err)
		}
		successor := widget(func(cr *unstructured.Unstructured) { cr.SetUID("uid-2"); cr.SetResourceVersion("") })
		if err := b.client.Create(ctx, successor); err != nil {
			t.Error(err)
		}
		return fail(ctx, spec)
	}
	b.mustReconcile()
	wantEqual(t, map[string]string{}, b.conditions())
	wantEqual(t, []string(nil), b.events())
	b.runner.run = succeed
	b.mustReconcile()
	wantEqual(t, []string{"uid-1"}, b.runner.removed)
	wantEqual(t, "True/Successful", b.conditions()["Successful"])
}

func TestARunThatIsStoppedIsCanceledAndNotFailed(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.runner.run = func(ctx context.Context, _ runner.Spec) runner.Result {
		b.Attempts.Stop()
		<-ctx.Done()
		return runner.Result{Outcome: content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled}}
	}
	result := b.mustReconcile()
	wantEqual(t, map[string]string{"Running": "False/Canceled", "Successful": "False/Running", "Ready": "Unknown/Running", "Reconciling": "True/Running"}, b.conditions())
	wantEqual(t, time.Duration(0), result.RequeueAfter)
	wantEqual(t, []string(nil), b.events())
	b.mustReconcile()
	wantEqual(t, 1, len(b.runner.specs))
}

func TestNothingBeginsThatIsToEndAtOnce(t *testing.T) {
	for name, happens := range map[string]func(b *bench){
		"the manager stops before the run":      func(b *bench) { b.Attempts.Stop() },
		"the deletion is told of with the read": func(b *bench) { b.mailbox().notify(signal{uid: "uid-1", end: errDeleted}) },
	} {
		for wantReads, waits := range map[int]bool{1: false, 2: true} {
			t.Run(fmt.Sprintf("%s, waits: %v", name, waits), func(t *testing.T) {
				reads := 0
				b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
				b.Reader = interceptor.NewClient(b.client, interceptor.Funcs{
					Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
						if reads++; reads == 2 { // A slot is held by then.
							happens(b)
						}
						return c.Get(context.WithoutCancel(ctx), key, obj, opts...)
					},
				})
				hall := slots.New(1)
				b.Slots = slotsFunc(func(ctx context.Context, watch schema.GroupVersionKind, priority slots.Priority) (func(), bool, error) {
					release, _, err := hall.Acquire(ctx, watch, priority)
					if !waits {
						happens(b)
					}
					return release, waits, err
				})
				before := b.stored().GetResourceVersion()
				wantEqual(t, reconcile.Result{}, b.mustReconcile())
				wantEqual(t, wantReads, reads)
				wantEqual(t, 0, len(b.runner.specs)+hall.Live(b.Watch.GVK))
				wantEqual(t, before, b.stored().GetResourceVersion())
			})
		}
	}
}

func TestACRThatGoesDuringItsRunEndsIt(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.runner.run = func(ctx context.Context, _ runner.Spec) runner.Result {
		if err := b.client.Delete(ctx, b.stored()); err != nil {
			t.Error(err)
		}
		b.mailbox().notify(signal{uid: "uid-1", end: errGone})
		<-ctx.Done()
		return runner.Result{Outcome: content.Outcome{Verdict: content.Canceled}}
	}
	b.mustReconcile()
	b.mustReconcile()
	wantEqual(t, []string(nil), b.events())
	if !slices.Contains(b.runner.removed, "uid-1") {
		t.Errorf("the directory of the CR stayed: removed are %v", b.runner.removed)
	}
}

func TestACRWhoseEndNobodyToldOfIsForgotten(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		if err := b.client.Delete(ctx, b.stored()); err != nil {
			t.Error(err)
		}
		return succeed(ctx, spec)
	}
	wantEqual(t, firstBackoff, b.mustReconcile().RequeueAfter)
	wantEqual(t, reconcile.Result{}, b.mustReconcile())
	wantEqual(t, []string{"uid-1"}, b.runner.removed)
	wantEqual(t, 0, len(b.states.byName))
}

func TestWithoutManagedStatusNothingIsWritten(t *testing.T) {
	unmanaged := plainWatch()
	unmanaged.ManageStatus = false
	for name, b := range map[string]*bench{
		"manageStatus: false":   newBench(t, unmanaged, widget(), interceptor.Funcs{}),
		"no status subresource": newBench(t, plainWatch(), widget(), interceptor.Funcs{}),
	} {
		t.Run(name, func(t *testing.T) {
			b.NoStatus = name == "no status subresource"
			before := b.stored().GetResourceVersion()
			wantEqual(t, time.Hour, b.mustReconcile().RequeueAfter)
			wantEqual(t, before, b.stored().GetResourceVersion())
			wantEqual(t, 1, len(b.runner.specs))
			b.events()
			b.mustReconcileDue()
			wantEqual(t, []string(nil), b.events())
		})
	}
}

func TestACRThatIsDeletedBeforeItsFinalizerCameEndsQuietly(t *testing.T) {
	writes := 0
	b := newBench(t, finalizerWatch(), widget(withFinalizers("x.io/y")), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if writes++; writes == 1 { // After a slot is held, before the finalizer is added.
				if err := c.Delete(ctx, widget()); err != nil {
					return err
				}
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	wantEqual(t, reconcile.Result{}, b.mustReconcile())
	wantEqual(t, []int{0, 1}, []int{len(b.runner.specs), writes})
	wantEqual(t, []string{"x.io/y"}, b.stored().GetFinalizers())
}

func TestWhatWaitedForItsSlotIsReadAgain(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	hall := slots.New(1)
	b.Slots = hall
	release, _, err := hall.Acquire(t.Context(), schema.GroupVersionKind{Kind: "Other"}, slots.Normal)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan reconcile.Result)
	go func() { done <- b.mustReconcile() }()
	eventually(t, func() bool { return hall.Waiting(b.Watch.GVK) == 1 })
	changed := b.stored()
	changed.SetGeneration(2)
	if err := b.client.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	release()
	wantEqual(t, time.Hour, (<-done).RequeueAfter)
	wantEqual(t, []string{"started ns/w generation 2: created", "playbook_on_stats", "ended Succeeded"}, b.journal.lines)
	wantEqual(t, 0, hall.Live(b.Watch.GVK))
}

func TestOnlyWhatWaitedForItsSlotIsPreparedAgain(t *testing.T) {
	for waits, want := range map[bool]int{false: 1, true: 2} {
		reads, began := 0, false
		b := newBench(t, plainWatch(), widget(), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if !began {
					reads++
				}
				return c.Get(ctx, key, obj, opts...)
			},
		})
		b.Access = accessFunc(func(*unstructured.Unstructured) ([]byte, func(), error) {
			began = true
			return nil, func() {}, nil
		})
		prepared := &countingEngine{Engine: b.Content}
		b.Content, b.Slots = prepared, after(b.Slots, waits)
		b.mustReconcile()
		wantEqual(t, []int{want, want}, []int{reads, prepared.times})
		wantEqual(t, 1, len(b.runner.specs))
	}
}

// countingEngine counts what is prepared.
type countingEngine struct {
	content.Engine

	times int
}

func (e *countingEngine) Prepare(ctx context.Context, r content.Request) (content.Work, *content.Outcome) {
	e.times++
	return e.Engine.Prepare(ctx, r)
}

func TestWhatNeedsNoRunTakesNoSlot(t *testing.T) {
	ran := func(b *bench) { b.mustReconcile() }
	none := func(*bench) {}
	for name, test := range map[string]struct {
		cr      *unstructured.Unstructured
		before  func(b *bench)
		want    []string // removed directories
		after   time.Duration
		already int // runs before
	}{
		"a CR that is gone": {nil, func(b *bench) { b.states.of(request.NamespacedName).begin("uid-1") }, []string{"uid-1"}, 0, 0},
		"a CR that is being deleted without our finalizer": {widget(withFinalizers("x.io/y"), deleting), none, nil, 0, 0},
		"a CR whose version has run":                       {widget(), ran, nil, time.Hour, 1},
		"a CR with an annotation that cannot be read":      {widget(withAnnotations(map[string]string{periodAnnotation: "soon"})), none, nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, plainWatch(), test.cr, interceptor.Funcs{})
			test.before(b)
			b.Slots = full(t)
			for range 2 { // As late events and repeated ones do.
				wantEqual(t, test.after, b.mustReconcile().RequeueAfter)
			}
			wantEqual(t, test.want, b.runner.removed)
			wantEqual(t, test.already, len(b.runner.specs))
			var forgotten []string
			if test.cr == nil {
				forgotten = []string{b.Watch.GVK.String() + " " + request.String()}
			}
			wantEqual(t, forgotten, slices.Compact(b.journal.forgotten))
		})
	}
}

func TestAPanicGivesItsSlotBack(t *testing.T) {
	for name, where := range map[string]func(b *bench){
		"in the read that follows the wait": func(b *bench) {
			reads := 0
			b.Slots = after(b.Slots, true)
			b.Reader = interceptor.NewClient(b.client, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if reads++; reads == 2 {
						panic("a defect")
					}
					return c.Get(ctx, key, obj, opts...)
				},
			})
		},
		"in the write of what came of it": func(b *bench) {
			ended := false
			b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
				ended = true
				return succeed(ctx, spec)
			}
			b.Client = interceptor.NewClient(b.client, interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
					if ended {
						ended = false
						panic("a defect")
					}
					return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
				},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
			hall := slots.New(1)
			b.Slots = hall
			where(b)
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the test saw no panic")
					}
				}()
				_, _ = b.reconcile()
			}()
			wantEqual(t, 0, hall.Live(b.Watch.GVK))
			b.runner.run = succeed
			b.mustReconcile()
			wantEqual(t, "True/Successful", b.conditions()["Successful"])
		})
	}
}

func TestARunThatPanicsFails(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.runner.run = func(context.Context, runner.Spec) runner.Result { panic("a defect") }
	wantEqual(t, time.Second, b.mustReconcile().RequeueAfter)
	wantEqual(t, "True/RunnerCrashed", b.conditions()["Failure"])
	wantEqual(t, "ended Failed", b.journal.lines[len(b.journal.lines)-1])
	b.runner.run = succeed
	b.mustReconcileDue()
	wantEqual(t, "True/Successful", b.conditions()["Successful"])
}

// preparing is an engine that prepares as it is told.
type preparing struct {
	content.Engine

	prepare func(ctx context.Context) (content.Work, *content.Outcome)
}

func (e preparing) Prepare(ctx context.Context, _ content.Request) (content.Work, *content.Outcome) {
	return e.prepare(ctx)
}

func TestAStopEndsWhatPreparesARun(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	inner := b.Content
	b.Content = preparing{inner, func(ctx context.Context) (content.Work, *content.Outcome) {
		b.Attempts.Stop()
		<-ctx.Done()
		return inner.Prepare(ctx, content.Request{Object: widget()})
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	result, err := b.Reconcile(ctx, request)
	if err != nil || ctx.Err() != nil {
		t.Errorf("the function of the program did not see the stop: %v, %v", err, ctx.Err())
	}
	wantEqual(t, reconcile.Result{}, result)
	wantEqual(t, 0, len(b.runner.specs))
}

func TestAResultIsWrittenThoughNoSlotIsFree(t *testing.T) {
	broken := true
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.Client = interceptor.NewClient(b.client, failing(&broken, apierrors.NewForbidden(schema.GroupResource{}, "w", errors.New("not now"))))
	broken = false
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		broken = true
		return succeed(ctx, spec)
	}
	if _, err := b.reconcile(); err == nil {
		t.Fatal("want the API server's error")
	}
	broken = false
	b.Slots = full(t)
	wantEqual(t, immediately, b.mustReconcile().RequeueAfter)
	wantEqual(t, "True/Successful", b.conditions()["Successful"])
	wantEqual(t, time.Hour, b.mustReconcile().RequeueAfter)
}

func TestAnEventThatMetAnUnwrittenResultStillLeadsToARun(t *testing.T) {
	broken := false
	b := newBench(t, plainWatch(), widget(), failing(&broken, apierrors.NewForbidden(schema.GroupResource{}, "w", errors.New("not now"))))
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		broken = true
		return succeed(ctx, spec)
	}
	if _, err := b.reconcile(); err == nil {
		t.Fatal("want the API server's error")
	}
	broken = false
	b.mailbox().markDirty(causeRelated + "Secret ns/s changed")
	wantEqual(t, immediately, b.mustReconcile().RequeueAfter)
	b.runner.run = succeed
	b.mustReconcile()
	wantEqual(t, 2, len(b.runner.specs))
}

func TestADeletionMovesAWaitingCRToTheFront(t *testing.T) {
	b := newBench(t, finalizerWatch(), widget(withFinalizers(ourFinalizer)), interceptor.Funcs{})
	var priorities []slots.Priority
	ask := make(chan slots.Priority)
	b.Slots = slotsFunc(func(ctx context.Context, _ schema.GroupVersionKind, priority slots.Priority) (func(), bool, error) {
		priorities = append(priorities, priority)
		ask <- priority
		if priority == slots.Urgent {
			return func() {}, true, nil
		}
		<-ctx.Done()
		return nil, true, context.Cause(ctx)
	})
	done := make(chan reconcile.Result)
	go func() { done <- b.mustReconcile() }()
	<-ask
	if err := b.client.Delete(t.Context(), b.stored()); err != nil {
		t.Fatal(err)
	}
	b.mailbox().notify(signal{uid: "uid-1"})
	<-ask
	<-done
	wantEqual(t, []slots.Priority{slots.Changed, slots.Urgent}, priorities)
	wantEqual(t, "bye", b.runner.specs[0].Role)
}

// slotsFunc are Slots that admit as it says.
type slotsFunc func(ctx context.Context, watch schema.GroupVersionKind, priority slots.Priority) (release func(), waited bool, err error)

func (f slotsFunc) Acquire(ctx context.Context, watch schema.GroupVersionKind, priority slots.Priority) (func(), bool, error) {
	return f(ctx, watch, priority)
}

// after returns slots that say that the run has waited, or that it has not.
func after(hall Slots, waits bool) slotsFunc {
	return func(ctx context.Context, watch schema.GroupVersionKind, priority slots.Priority) (func(), bool, error) {
		release, _, err := hall.Acquire(ctx, watch, priority)
		return release, waits, err
	}
}

// full returns slots that are all taken.
func full(t *testing.T) *slots.Slots {
	t.Helper()
	s := slots.New(1)
	if _, _, err := s.Acquire(t.Context(), schema.GroupVersionKind{Kind: "Other"}, slots.Normal); err != nil {
		t.Fatal(err)
	}
	return s
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			t.Fatal("it never came about")
		}
		<-time.After(time.Millisecond)
	}
}

func TestRestart(t *testing.T) {
	completion := time.Date(2026, 1, 2, 2, 34, 5, 0, time.UTC) // Half an hour ago.
	for name, test := range map[string]struct {
		digest   string
		noStatus bool
		change   func(cr *unstructured.Unstructured)
		before   func(cr *unstructured.Unstructured) // its first run
		asked    time.Duration                       // by the role
		runs     int
		after    time.Duration
	}{
		"what was settled rests for what is left of its period":                     {digest: "d1", after: 30 * time.Minute},
		"other content runs once":                                                   {digest: "d2", runs: 1, after: time.Hour},
		"without a status subresource the author of the CR wrote what stands there": {digest: "d1", noStatus: true, runs: 1, after: time.Hour},
		"where the content is not known a CR runs":                                  {digest: "", runs: 1, after: time.Hour},
		"a new generation runs":                                                     {digest: "d1", change: withGeneration(2), runs: 1, after: time.Hour},
		"a period that has elapsed runs": {
			digest: "d1", before: withAnnotations(map[string]string{periodAnnotation: "10m"}), runs: 1, after: 10 * time.Minute,
		},
		"without a period it rests until something happens": {
			digest: "d1", before: withAnnotations(map[string]string{periodAnnotation: "0s"}),
		},
		"an annotation that steers runs and came while no manager was there runs": {
			digest: "d1", change: withAnnotations(map[string]string{requestedAnnotation: "now"}), runs: 1, after: time.Hour,
		},
		"an annotation of others does not": {
			digest: "d1", change: withAnnotations(map[string]string{"x.io/y": "z"}), after: 30 * time.Minute,
		},
		"a role that asked to come again comes again": {
			digest: "d1", before: withAnnotations(map[string]string{periodAnnotation: "0s"}), asked: time.Minute, runs: 1,
		},
		"a bad annotation is told of": {
			digest: "d1", change: withAnnotations(map[string]string{periodAnnotation: "soon"}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			first := widget()
			if test.before != nil {
				test.before(first)
			}
			before := newBench(t, plainWatch(), first, interceptor.Funcs{})
			before.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
				result := succeed(ctx, spec)
				result.Summary.Completion, result.Summary.RequeueAfter = completion, test.asked
				return result
			}
			before.mustReconcile()
			cr := before.stored()
			if test.change != nil {
				test.change(cr)
			}
			cr.SetResourceVersion("")
			b := newBench(t, plainWatch(), cr, interceptor.Funcs{})
			b.Digest, b.NoStatus = test.digest, test.noStatus
			version := b.stored().GetResourceVersion()
			result := b.mustReconcile()
			wantEqual(t, test.after, result.RequeueAfter)
			wantEqual(t, test.runs, len(b.runner.specs))
			if test.after > 0 && test.runs == 0 && b.stored().GetResourceVersion() != version {
				t.Error("something was written for a CR that rests")
			}
			if test.after > 0 {
				b.mustReconcileDue()
				wantEqual(t, test.runs+1, len(b.runner.specs))
			}
		})
	}
}

func TestLateEventsBringNoRunToWhatRests(t *testing.T) {
	before := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	before.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		result := succeed(ctx, spec)
		result.Summary.Completion = before.Clock.Now()
		return result
	}
	before.mustReconcile()
	cr := before.stored()
	cr.SetResourceVersion("")
	b := newBench(t, plainWatch(), cr, interceptor.Funcs{})
	b.mustReconcile()
	wantEqual(t, 0, len(b.runner.specs))
	wantEqual(t, time.Hour, b.mustReconcile().RequeueAfter)
	wantEqual(t, 0, len(b.runner.specs))
}

func TestAResultOutlivesAnOutage(t *testing.T) {
	const outage = 5 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		var back time.Time
		b := newBench(t, plainWatch(), widget(), interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, name string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				if time.Now().Before(back) {
					return errors.New("connection refused")
				}
				return c.SubResource(name).Patch(ctx, obj, patch, opts...)
			},
		})
		b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
			back = time.Now().Add(outage)
			return succeed(ctx, spec)
		}
		b.mustReconcile()
		if late := time.Since(back); late > 10*time.Second {
			t.Errorf("the result was written %s after the API server came back", late)
		}
		wantEqual(t, 1, len(b.runner.specs))
		wantEqual(t, "True/Successful", b.conditions()["Successful"])
	})
}

func TestAStopEndsTheWritingOfAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := false
		b := newBench(t, plainWatch(), widget(), interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, name string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				if ran {
					return errors.New("connection refused")
				}
				return c.SubResource(name).Patch(ctx, obj, patch, opts...)
			},
		})
		b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
			ran = true
			time.AfterFunc(time.Minute, b.Attempts.Stop)
			return succeed(ctx, spec)
		}
		began := time.Now()
		if _, err := b.reconcile(); err == nil {
			t.Error("want the API server's error")
		}
		if took := time.Since(began); took < time.Minute || took > time.Minute+10*time.Second {
			t.Errorf("it was tried for %s, want until the stop after a minute", took)
		}
	})
}
