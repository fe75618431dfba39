package controller

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// resting is content that knows without a look whether anything has changed.
type resting struct {
	manifests

	rests                bool
	asked, looked, ended int
}

func (r *resting) Prepare(context.Context, content.Request) (content.Work, *content.Outcome) {
	return r, nil
}

func (r *resting) UpToDate() (content.Result, bool) {
	r.asked++
	return r.result, r.rests
}

func (r *resting) Settled(context.Context, content.Job) (content.Result, bool) {
	r.looked++
	return r.result, true
}

func (r *resting) Run(context.Context, content.Job) content.Result {
	r.ended++
	return r.result
}

func TestContentThatRestsIsNotLookedAt(t *testing.T) {
	watch := plainWatch()
	watch.Content, watch.Custom = watches.Content{}, &watches.ContentKind{}
	var reads, grants int
	b := newBench(t, watch, widget(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, into, options...)
		},
	})
	b.Access = accessFunc(func(*unstructured.Unstructured) ([]byte, func(), error) {
		grants++
		return nil, func() {}, nil
	})
	r := &resting{rests: true, manifests: manifests{result: content.Result{Outcome: content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful}}}}
	b.Content = r
	step := func(why string, reconcile func(), wantAsked, wantLooked, wantGrants, wantReads int) {
		t.Helper()
		r.asked, r.looked, grants, reads = 0, 0, 0, 0
		reconcile()
		if r.asked != wantAsked || r.looked != wantLooked || grants != wantGrants || wantReads > 0 && reads != wantReads {
			t.Errorf("%s: asked %d, looked %d, %d grants, %d reads", why, r.asked, r.looked, grants, reads)
		}
		if b.mailbox().whyDirty() != "" {
			t.Errorf("%s: it is dirty: %s", why, b.mailbox().whyDirty())
		}
	}
	reconcile := func() { b.mustReconcile() }
	due := func() { b.mustReconcileDue() }
	dirty := func() { b.mailbox().markDirty("ConfigMap a changed"); b.mustReconcile() }
	step("a manager's first look", reconcile, 0, 1, 1, 0)
	step("its period is over", due, 1, 0, 0, 1)
	step("an event", dirty, 1, 0, 0, 1)
	r.rests = false
	step("its period is over, and something has changed", due, 1, 1, 1, 1)
	step("an event of a change", dirty, 1, 1, 1, 1)
	r.rests = true
	step("somebody asks for a run", func() {
		b.annotate(watches.CustomAnnotations+requestedSuffix, "now")
		b.mustReconcile()
	}, 0, 1, 1, 0)
	if r.ended != 0 {
		t.Errorf("%d runs", r.ended)
	}
}

// lagging is content whose run repairs what its look has found: a trigger that comes after the look began is for another run.
type lagging struct {
	manifests

	looks, runs int
	// duringLook happens while the content looks for the first time.
	duringLook func()
}

func (l *lagging) Prepare(context.Context, content.Request) (content.Work, *content.Outcome) {
	return l, nil
}

func (l *lagging) Settled(context.Context, content.Job) (content.Result, bool) {
	l.looks++
	if l.looks == 1 {
		l.duringLook()
	}
	return l.result, l.looks > 2
}

func (l *lagging) Run(context.Context, content.Job) content.Result {
	l.runs++
	return l.result
}

func TestATriggerDuringALookIsNotCoveredByTheRun(t *testing.T) {
	for name, before := range map[string]string{"the CR was dirty": "ConfigMap a changed", "it was not": ""} {
		t.Run(name, func(t *testing.T) {
			watch := plainWatch()
			watch.Content, watch.Custom = watches.Content{}, &watches.ContentKind{ChecksEachPeriod: true}
			b := newBench(t, watch, widget(), interceptor.Funcs{})
			l := &lagging{manifests: manifests{result: content.Result{Outcome: content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful}}}}
			l.duringLook = func() { b.mailbox().markDirty("ConfigMap b changed") }
			b.Content = l
			if before != "" {
				b.mailbox().markDirty(before)
			}
			b.mustReconcile()
			wantEqual(t, "ConfigMap b changed", b.mailbox().whyDirty())
			b.mustReconcile()
			wantEqual(t, 2, l.runs)
			b.mustReconcile()
			wantEqual(t, "", b.mailbox().whyDirty())
			wantEqual(t, 2, l.runs)
		})
	}
}

func TestAPanicOfALookLosesNoTrigger(t *testing.T) {
	watch := plainWatch()
	watch.Content, watch.Custom = watches.Content{}, &watches.ContentKind{ChecksEachPeriod: true}
	b := newBench(t, watch, widget(), interceptor.Funcs{})
	b.Content = &lagging{duringLook: func() { panic("a defect") }}
	b.mailbox().markDirty("ConfigMap a changed")
	func() {
		defer func() { _ = recover() }() // As controller-runtime does.
		b.mustReconcile()
	}()
	wantEqual(t, "ConfigMap a changed", b.mailbox().whyDirty())
}
