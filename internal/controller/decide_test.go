package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

const ourFinalizer = "g.io/finalizer"

func widget(changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	cr := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
	cr.SetGroupVersionKind(schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: "Widget"})
	cr.SetNamespace("ns")
	cr.SetName("w")
	cr.SetUID("uid-1")
	cr.SetGeneration(1)
	cr.SetResourceVersion("1")
	for _, change := range changes {
		change(cr)
	}
	return cr
}

func withUID(uid types.UID) func(*unstructured.Unstructured) {
	return func(cr *unstructured.Unstructured) { cr.SetUID(uid) }
}

func withVersion(version string) func(*unstructured.Unstructured) {
	return func(cr *unstructured.Unstructured) { cr.SetResourceVersion(version) }
}

func withFinalizers(names ...string) func(*unstructured.Unstructured) {
	return func(cr *unstructured.Unstructured) { cr.SetFinalizers(names) }
}

func withLabels(set map[string]string) func(*unstructured.Unstructured) {
	return func(cr *unstructured.Unstructured) { cr.SetLabels(set) }
}

func withAnnotations(set map[string]string) func(*unstructured.Unstructured) {
	return func(cr *unstructured.Unstructured) { cr.SetAnnotations(set) }
}

func withGeneration(generation int64) func(*unstructured.Unstructured) {
	return func(cr *unstructured.Unstructured) { cr.SetGeneration(generation) }
}

func deleting(cr *unstructured.Unstructured) {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	cr.SetDeletionTimestamp(&now)
}

func withStatus(status map[string]any) func(*unstructured.Unstructured) {
	return func(cr *unstructured.Unstructured) { cr.Object["status"] = status }
}

func plainWatch() watches.Watch {
	return watches.Watch{
		GVK: schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: "Widget"}, Selector: labels.Everything(),
		ManageStatus: true, SnakeCaseParameters: true, MarkUnsafe: true, MaxRunnerArtifacts: 20,
		Content: watches.Content{Role: "widget", RolesPath: "/roles"},
	}
}

func finalizerWatch() watches.Watch {
	w := plainWatch()
	w.Finalizer = &watches.Finalizer{Name: ourFinalizer, Content: watches.Content{Role: "bye", RolesPath: "/roles"}}
	return w
}

func selectorWatch() watches.Watch {
	w := finalizerWatch()
	w.Selector = labels.SelectorFromSet(labels.Set{"on": "yes"})
	return w
}

// known is what an attempt finds beside the CR itself.
type known struct {
	state

	dirty string
}

// attempt returns one that has read the CR.
func (k known) attempt(watch *watches.Watch, cr *unstructured.Unstructured) *attempt {
	r := &Reconciler{Watch: *watch}
	a := &attempt{entry: &entry{state: k.state}, observation: r.observed(cr)}
	a.dirty, a.before = k.dirty, outcomeBefore(&k.state, cr)
	return a
}

func TestDecide(t *testing.T) {
	on := withLabels(map[string]string{"on": "yes"})
	off := withAnnotations(map[string]string{pausedAnnotation: "true"})
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ran := func(cr *unstructured.Unstructured) known {
		watch := plainWatch()
		return known{state: state{version: versionOf(&watch, cr), last: &conclusion{}}}
	}
	dirty := func(st known) known { st.dirty = "related"; return st }
	dueIn := func(st known, pause time.Duration) known { st.due = now.Add(pause); return st }
	ours := withFinalizers(ourFinalizer)
	for name, test := range map[string]struct {
		cr    *unstructured.Unstructured
		watch watches.Watch
		state known
		want  step
	}{
		"without a finalizer a CR runs at once":                       {widget(), plainWatch(), known{}, run},
		"the finalizer comes before the first run":                    {widget(), finalizerWatch(), known{}, addFinalizer},
		"somebody else's finalizer is not ours":                       {widget(withFinalizers("x.io/y")), finalizerWatch(), known{}, addFinalizer},
		"a CR that holds the finalizer runs":                          {widget(ours), finalizerWatch(), known{}, run},
		"deletion with our finalizer finalizes":                       {widget(withFinalizers("x.io/y", ourFinalizer), deleting), finalizerWatch(), known{}, finalize},
		"deletion without our finalizer is others' business":          {widget(withFinalizers("x.io/y"), deleting), finalizerWatch(), known{}, ignore},
		"deletion where the watch has no finalizer":                   {widget(withFinalizers("x.io/y"), deleting), plainWatch(), known{}, ignore},
		"a CR that the selector does not match":                       {widget(), selectorWatch(), known{}, ignore},
		"a CR that the selector matches":                              {widget(on, ours), selectorWatch(), known{}, run},
		"a CR that lost its label is finalized all the same":          {widget(ours, deleting), selectorWatch(), known{}, finalize},
		"an unwritten result goes before everything":                  {widget(), finalizerWatch(), known{state: state{unwritten: true}}, rewrite},
		"an unwritten result goes even before the finalizer's run":    {widget(ours, deleting), finalizerWatch(), known{state: state{unwritten: true}}, rewrite},
		"a deleted CR never gets a finalizer that it does not have.":  {widget(deleting), finalizerWatch(), known{}, ignore},
		"nothing runs in a pause":                                     {widget(off), finalizerWatch(), known{}, reportPaused},
		"not even what something made dirty":                          {widget(off), finalizerWatch(), dirty(known{}), reportPaused},
		"in a pause an unwritten result is written all the same":      {widget(off), finalizerWatch(), known{state: state{unwritten: true}}, rewrite},
		"deletion finalizes what is paused":                           {widget(off, ours, deleting), finalizerWatch(), known{}, finalize},
		"what is paused and has no finalizer of ours just goes":       {widget(off, deleting), finalizerWatch(), known{}, ignore},
		"a pause of what is not selected is nobody's business":        {widget(off), selectorWatch(), known{}, ignore},
		"a pause that is over is none":                                {widget(withAnnotations(map[string]string{pausedAnnotation: "false"})), plainWatch(), known{}, run},
		"the version that ran rests":                                  {widget(), plainWatch(), ran(widget()), upToDate},
		"a status, a label or a finalizer of others is not a version": {widget(on, withStatus(map[string]any{"x": "y"}), withFinalizers("x.io/y"), withVersion("9")), plainWatch(), ran(widget()), upToDate},
		"another generation runs":                                     {widget(withGeneration(2)), plainWatch(), ran(widget()), run},
		"another object of the name runs":                             {widget(withUID("uid-2")), plainWatch(), ran(widget()), run},
		"another annotation that steers runs runs":                    {widget(withAnnotations(map[string]string{requestedAnnotation: "now"})), plainWatch(), ran(widget()), run},
		"another annotation of others does not":                       {widget(withAnnotations(map[string]string{"x.io/y": "z"})), plainWatch(), ran(widget()), upToDate},
		"other content of a kind without generations runs":            {widget(withGeneration(0), func(cr *unstructured.Unstructured) { cr.Object["data"] = "new" }), plainWatch(), ran(widget(withGeneration(0))), run},
		"the same content of a kind without generations rests":        {widget(withGeneration(0), withVersion("9")), plainWatch(), ran(widget(withGeneration(0))), upToDate},
		"what something made dirty runs":                              {widget(), plainWatch(), dirty(ran(widget())), run},
		"what is due runs":                                            {widget(), plainWatch(), dueIn(ran(widget()), 0), run},
		"what is not due yet rests":                                   {widget(), plainWatch(), dueIn(ran(widget()), time.Millisecond), upToDate},
		"a change does not wait until it is due":                      {widget(withGeneration(2)), plainWatch(), dueIn(ran(widget()), time.Minute), run},
		"what lost the finalizer gets it back":                        {widget(), finalizerWatch(), ran(widget()), addFinalizer},
		"a finalizer that failed waits until it is due":               {widget(ours, deleting), finalizerWatch(), dueIn(ran(widget(ours, deleting)), time.Minute), upToDate},
		"and is not hurried by what it deletes":                       {widget(ours, deleting), finalizerWatch(), dirty(dueIn(ran(widget(ours, deleting)), time.Minute)), upToDate},
		"a finalizer is due again":                                    {widget(ours, deleting), finalizerWatch(), dueIn(ran(widget(ours, deleting)), 0), finalize},
		"deletion is a change of what ran":                            {widget(ours, deleting), finalizerWatch(), ran(widget(ours)), finalize},
		"deletion does not wait as a run that failed does":            {widget(ours, deleting), finalizerWatch(), dueIn(ran(widget(ours)), time.Minute), finalize},
	} {
		t.Run(name, func(t *testing.T) {
			a := test.state.attempt(&test.watch, test.cr)
			wantEqual(t, test.want, decide(&a.observation, &a.state, now).step)
		})
	}
}

func TestBackoffDoublesUpToItsLimit(t *testing.T) {
	var got []time.Duration
	for _, failures := range []int{1, 2, 3, 4, 5, 6, 100} {
		got = append(got, backoffAfter(failures, 20*time.Second))
	}
	want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 20 * time.Second, 20 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRequeueAfter(t *testing.T) {
	const period, backoff, wish = 10 * time.Hour, 8 * time.Second, 90 * time.Second
	outcome := func(v content.Verdict) content.Outcome { return content.Outcome{Verdict: v} }
	for name, test := range map[string]struct {
		conclusion conclusion
		want       time.Duration
	}{
		"a success waits for the period":              {conclusion{Result: content.Result{Outcome: outcome(content.Succeeded)}, period: period}, period},
		"a period of zero is none":                    {conclusion{Result: content.Result{Outcome: outcome(content.Succeeded)}}, 0},
		"a role's wish goes over the period":          {conclusion{Result: content.Result{Outcome: outcome(content.Succeeded), RequeueAfter: wish}, period: period}, wish},
		"a failure backs off, whatever the role asks": {conclusion{Result: content.Result{Outcome: outcome(content.Failed), RequeueAfter: wish}, period: period}, backoff},
		"a failed finalizer is retried":               {conclusion{Result: content.Result{Outcome: outcome(content.Failed)}, finalizing: true}, backoff},
		"a finalized CR does not come back":           {conclusion{Result: content.Result{Outcome: outcome(content.Succeeded)}, finalizing: true, period: period}, 0},
		"a refused CR waits for its change":           {conclusion{Result: content.Result{Outcome: outcome(content.Failed)}, refused: true, period: period}, 0},
		"a canceled run is the next manager's":        {conclusion{Result: content.Result{Outcome: outcome(content.Canceled)}, period: period}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := requeueAfter(&test.conclusion, backoff); got != test.want {
				t.Errorf("want %s, got %s", test.want, got)
			}
		})
	}
}
