package controller

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/internal/watches"
)

// kstatus returns Ready, Reconciling and Stalled.
func (b *bench) kstatus() (found map[string]string) {
	b.t.Helper()
	found = b.conditions()
	for _, other := range []string{"Running", "Successful", "Failure"} {
		delete(found, other)
	}
	return found
}

func TestALaterRunOfAReadyCRDoesNotSetReconciling(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.mustReconcile()
	atRun := map[string]string{}
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		atRun = b.kstatus()
		return succeed(ctx, spec)
	}
	for _, run := range []func(){
		func() { b.mustReconcileDue() },
		func() { b.mailbox().markDirty(causeRelated + "Secret a/b changed"); b.mustReconcile() },
		func() { b.restart(); b.Digest = "d2"; b.mustReconcile() },
	} {
		atRun = nil
		run()
		wantEqual(t, map[string]string{"Ready": "True/Successful"}, atRun)
	}
}

// restart forgets all that a manager has in memory.
func (b *bench) restart() { b.states = states{} } // Nobody holds its lock.

func TestAFailureThatStaysTheSameStalls(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{}) // The longest pause is a minute.
	b.runner.run = fail
	b.mustReconcile()
	for range 5 {
		wantEqual(t, map[string]string{"Ready": "False/Failed", "Reconciling": "True/Retrying"}, b.kstatus())
		b.mustReconcileDue()
	}
	b.mustReconcileDue() // The seventh.
	stalled := map[string]string{"Ready": "False/Failed", "Stalled": "True/Failed"}
	wantEqual(t, stalled, b.kstatus())
	b.mustReconcileDue()
	wantEqual(t, stalled, b.kstatus())
	b.restart()
	b.mustReconcile()
	wantEqual(t, stalled, b.kstatus())
	b.annotate(watches.AnsibleAnnotations+requestedSuffix, "now")
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		wantEqual(t, map[string]string{"Ready": "False/Failed", "Reconciling": "True/Running"}, b.kstatus())
		return fail(ctx, spec)
	}
	b.mustReconcile()
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		result := fail(ctx, spec)
		result.Outcome.Message = "another reason"
		return result
	}
	b.mustReconcileDue()
	wantEqual(t, map[string]string{"Ready": "False/Failed", "Reconciling": "True/Retrying"}, b.kstatus())
}

// writing gives runs an access by which they write a Ready, and has the conditions that they wrote.
type writing struct {
	Access

	written *Readies
}

func (w *writing) Grant(cr *unstructured.Unstructured, username string, labels map[string]string) (Grant, error) {
	grant, err := w.Access.Grant(cr, username, labels)
	w.written = &Readies{}
	grant.Readies = w.written
	return grant, err
}

// writeConditions writes the status's conditions as a run does that reads them, changes one, and sends all.
func (b *bench) writeConditions(to *writing, change func(c map[string]any)) {
	cr := b.stored()
	conditions, _, _ := unstructured.NestedSlice(cr.Object, "status", "conditions")
	for _, c := range conditions {
		condition := c.(map[string]any)
		change(condition)
		if condition["type"] == "Ready" {
			to.written.Add(condition)
		}
	}
	if err := errors.Join(unstructured.SetNestedSlice(cr.Object, conditions, "status", "conditions"), b.client.Status().Update(b.t.Context(), cr)); err != nil {
		b.t.Fatal(err)
	}
}

func TestAReadyThatARunWritesIsTheContents(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	access := &writing{Access: b.Access}
	b.Access = access
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		b.writeConditions(access, func(c map[string]any) {
			if c["type"] == "Ready" {
				c["status"], c["reason"] = "False", "Own"
			}
		})
		return succeed(ctx, spec)
	}
	b.mustReconcile()
	wantEqual(t, map[string]string{"Ready": "False/Own"}, b.kstatus())
	b.runner.run = fail
	b.mustReconcileDue()
	b.restart()
	b.mustReconcile()
	wantEqual(t, map[string]string{"Ready": "False/Own", "Reconciling": "True/Retrying"}, b.kstatus())
}

// A run that writes another condition sends the whole list, with the manager's Ready in it.
func TestAReadyThatARunPassesOnStaysTheManagers(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	access := &writing{Access: b.Access}
	b.Access = access
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		b.writeConditions(access, func(map[string]any) {})
		return succeed(ctx, spec)
	}
	b.mustReconcile()
	b.mustReconcileDue()
	wantEqual(t, map[string]string{"Ready": "True/Successful"}, b.kstatus())
}

// A schema that refuses the conditions of kstatus loses nothing else.
func TestASchemaThatRefusesReady(t *testing.T) {
	refused := 0
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if data, err := patch.Data(obj); err != nil || strings.Contains(string(data), "Ready") {
				refused++
				return errors.Join(err, schemaError())
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
	b.mustReconcile()
	b.mustReconcileDue()
	wantEqual(t, map[string]string{"Running": "True/Successful", "Successful": "True/Successful", "Failure": "False/Successful"}, b.conditions())
	wantEqual(t, 1, refused)
	wantEqual(t, "d", status.Digest(b.stored())[:1])
}

// A success of an earlier manager that did not know Ready is shown without a run, once.
func TestAnEarlierManagersSuccessGetsReady(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		result := succeed(ctx, spec)
		result.Summary.Completion = b.clock.Now()
		return result
	}
	b.mustReconcile()
	cr := b.stored()
	conditions, _, _ := unstructured.NestedSlice(cr.Object, "status", "conditions")
	if err := errors.Join(unstructured.SetNestedSlice(cr.Object, conditions[:3], "status", "conditions"), b.client.Status().Update(t.Context(), cr)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		b.restart()
		b.mustReconcile()
		wantEqual(t, map[string]string{"Ready": "True/Successful"}, b.kstatus())
	}
	wantEqual(t, 1, len(b.runner.specs))
}

// A schema that drops fields of the status is named once, with the remedy.
func TestASchemaThatDropsFieldsOfTheStatus(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			err := c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			if cr, ok := obj.(*unstructured.Unstructured); ok && err == nil {
				unstructured.RemoveNestedField(cr.Object, "status", "contentDigest")
				unstructured.RemoveNestedField(cr.Object, "status", "contentRun")
			}
			return err
		},
	})
	var lines strings.Builder
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { lines.WriteString(args + "\n") }, funcr.Options{}))
	for range 2 {
		b.mailbox().markDirty(causeRelated + "Secret a/b changed")
		if _, err := b.Reconcile(ctx, request); err != nil {
			t.Fatal(err)
		}
	}
	if text := lines.String(); strings.Count(text, "drops fields of the status") != 1 || !strings.Contains(text, `"fields"=["contentDigest" "contentRun"]`) || !strings.Contains(text, "embed content.Status") {
		t.Errorf("got\n%s", text)
	}
}
