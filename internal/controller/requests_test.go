package controller

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// counted returns a bench that writes each request about the CR into requests: a read, a write of
// its metadata, or one of its status.
func counted(t *testing.T, watch watches.Watch, cr *unstructured.Unstructured) (b *bench, requests *strings.Builder) {
	t.Helper()
	requests = &strings.Builder{}
	return newBench(t, watch, cr, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			requests.WriteString(" GET")
			return c.Get(ctx, key, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			requests.WriteString(" metadata")
			return c.Patch(ctx, obj, patch, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			requests.WriteString(" " + sub)
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	}), requests
}

// located is content that executes elsewhere, as in a Job: it waits for a node, and then has two tasks.
type located struct{ manifests }

func (l *located) Run(_ context.Context, job content.Job) content.Result {
	job.Located("", "Pod g: no node has room")
	time.Sleep(5 * time.Second)
	job.Located("node a", "")
	time.Sleep(5 * time.Second)
	job.Working("first")
	time.Sleep(time.Minute)
	job.Working("second")
	time.Sleep(time.Minute)
	return l.result
}

// Prepare implements content.Engine.
func (l *located) Prepare(context.Context, content.Request) (content.Work, *content.Outcome) {
	return l, nil
}

// An attempt reads the CR once, and again only where it had to wait, or where another writer was faster. Each
// write begins with the last answer.
func TestTheRequestsOfARun(t *testing.T) {
	good := manifests{result: content.Result{Outcome: content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful}}}
	custom := plainWatch()
	custom.Content, custom.Custom = watches.Content{}, &watches.ContentKind{}
	for why, test := range map[string]struct {
		watch   watches.Watch
		cr      *unstructured.Unstructured
		prepare func(b *bench)
		want    string
	}{
		"a role":                     {plainWatch(), widget(), func(*bench) {}, " GET status status"},
		"a role's first finalizer":   {finalizerWatch(), widget(), func(*bench) {}, " GET metadata status status"},
		"a finalizer alone":          {finalizerWatch(), widget(withFinalizers(ourFinalizer), deleting), func(*bench) {}, " GET status metadata"},
		"a finalizer beside another": {finalizerWatch(), widget(withFinalizers("x.io/y", ourFinalizer), deleting), func(*bench) {}, " GET status status metadata"},
		"a run that waits":           {plainWatch(), widget(), func(b *bench) { b.Slots = after(b.Slots, true) }, " GET GET status status"},
		"a role that writes its CR": {plainWatch(), widget(), func(b *bench) {
			b.Access = accessFunc(func(*unstructured.Unstructured) ([]byte, func(), error) {
				b.annotates("x.io/y", "z")
				return nil, func() {}, nil
			})
		}, " GET status GET status status"},
		"a chart at rest": {custom, widget(), func(b *bench) { b.Content = &resting{manifests: good} }, " GET status"},
		"a chart":         {custom, widget(), func(b *bench) { b.Content = &good }, " GET status status"},
		"a Job":           {custom, widget(), func(b *bench) { b.Content = &located{good} }, " GET status status status status status status"},
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, requests := counted(t, test.watch, test.cr)
				b.Slots = slotsFunc(func(context.Context, schema.GroupVersionKind, slots.Priority) (func(), bool, error) {
					return func() {}, false, nil
				})
				test.prepare(b)
				b.mustReconcile()
				wantEqual(t, test.want, requests.String())
			})
		})
	}
}
