package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/watches"
)

func TestUpdatesThatTrigger(t *testing.T) {
	asked := plainWatch()
	asked.WatchAnnotationsChanges = true
	on := withLabels(map[string]string{"on": "yes"})
	content := func(text string) func(*unstructured.Unstructured) {
		return func(cr *unstructured.Unstructured) { cr.Object["data"] = text; cr.SetGeneration(0) }
	}
	for name, test := range map[string]struct {
		watch         watches.Watch
		before, after *unstructured.Unstructured
		want          bool
	}{
		"a new generation":   {plainWatch(), widget(), widget(withGeneration(2)), true},
		"a deletion":         {plainWatch(), widget(), widget(deleting), true},
		"a resync":           {plainWatch(), widget(), widget(), false},
		"our own status":     {plainWatch(), widget(), widget(withStatus(map[string]any{"a": "b"})), false},
		"our own finalizer":  {finalizerWatch(), widget(), widget(withFinalizers(ourFinalizer)), false},
		"a label edit":       {plainWatch(), widget(), widget(on), false},
		"an annotation edit": {plainWatch(), widget(), widget(withAnnotations(map[string]string{"a": "b"})), false},
		"an annotation edit, where it is asked for":     {asked, widget(), widget(withAnnotations(map[string]string{"a": "b"})), true},
		"an annotation that steers runs":                {plainWatch(), widget(), widget(withAnnotations(map[string]string{periodAnnotation: "1m"})), true},
		"one below another prefix":                      {plainWatch(), widget(), widget(withAnnotations(map[string]string{watches.ChartAnnotations + requestedSuffix: "now"})), true},
		"one that means nothing there":                  {plainWatch(), widget(), widget(withAnnotations(map[string]string{watches.ChartAnnotations + "upgrade-force": "true"})), false},
		"kubectl's record of the last apply":            {asked, widget(), widget(withAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "{}"})), false},
		"gaining the selector's label":                  {selectorWatch(), widget(), widget(on), true},
		"losing it, after which it is counted no more":  {selectorWatch(), widget(on), widget(withGeneration(2)), true},
		"a change of what the selector leaves out":      {selectorWatch(), widget(), widget(withGeneration(2)), false},
		"deletion of one that lost its label":           {selectorWatch(), widget(withFinalizers(ourFinalizer)), widget(withFinalizers(ourFinalizer), deleting), true},
		"new content of a kind without generations":     {plainWatch(), widget(content("a")), widget(content("b")), true},
		"the same content of a kind without them":       {plainWatch(), widget(content("a")), widget(content("a"), on), false},
		"another object of the same name between reads": {plainWatch(), widget(), widget(func(cr *unstructured.Unstructured) { cr.SetUID("uid-2") }), true},
	} {
		t.Run(name, func(t *testing.T) {
			s, q := &states{}, newQueue(t)
			s.of(request.NamespacedName).mailbox.setRan(versionOf(&test.watch, test.before))
			update := crUpdated{ObjectOld: stripped(t, test.before), ObjectNew: stripped(t, test.after)}
			if triggers(&test.watch).Update(update) {
				(&handler{watch: &test.watch, states: s}).Update(t.Context(), update, q)
			}
			wantEqual(t, test.want, q.Len() == 1)
		})
	}
}

func TestCreationTriggersWhereTheSelectorMatches(t *testing.T) {
	watch := selectorWatch()
	predicate := triggers(&watch)
	for name, test := range map[string]struct {
		cr   *unstructured.Unstructured
		want bool
	}{
		"matching":                            {widget(withLabels(map[string]string{"on": "yes"})), true},
		"not matching":                        {widget(), false},
		"not matching, but to be finalized":   {widget(withFinalizers(ourFinalizer), deleting), true},
		"being deleted without our finalizer": {widget(deleting), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := predicate.Create(event.TypedCreateEvent[*unstructured.Unstructured]{Object: stripped(t, test.cr)}); got != test.want {
				t.Errorf("want %v, got %v", test.want, got)
			}
		})
	}
}

func stripped(t *testing.T, cr *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	object, err := StripTransform()(cr)
	if err != nil {
		t.Fatal(err)
	}
	return object.(*unstructured.Unstructured)
}

func TestReduceKeepsWhatTriggersNeedAndNoMore(t *testing.T) {
	full := widget(deleting, withFinalizers(ourFinalizer), withLabels(map[string]string{"l": "1"}), withStatus(map[string]any{"big": "status"}),
		withAnnotations(map[string]string{"a": "1", corev1.LastAppliedConfigAnnotation: "{}"}))
	before := full.DeepCopy()
	got := stripped(t, full)
	want := widget(deleting, withFinalizers(ourFinalizer), withLabels(map[string]string{"l": "1"}), withAnnotations(map[string]string{"a": "1"}))
	delete(want.Object, "spec")
	want.Object[strippedField] = true
	delete(want.Object["metadata"].(map[string]any), "creationTimestamp")
	delete(got.Object["metadata"].(map[string]any), "creationTimestamp")
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before.Object, full.Object); diff != "" {
		t.Errorf("the object that was handed in changed:\n%s", diff)
	}
	if other, err := StripTransform()("no object"); err != nil || other != "no object" {
		t.Errorf("want what is no object as it is, got %v, %v", other, err)
	}
}

func TestPriorityOf(t *testing.T) {
	for name, test := range map[string]struct {
		cr   *unstructured.Unstructured
		want slots.Priority
	}{
		"a new CR is a change":                  {widget(), slots.Changed},
		"a generation that no status speaks of": {widget(withGeneration(2), withStatus(map[string]any{"observedGeneration": int64(1)})), slots.Changed},
		"a reported generation is normal":       {widget(withStatus(map[string]any{"observedGeneration": int64(1)})), slots.Normal},
		"what is deleted is urgent":             {widget(deleting, withFinalizers(ourFinalizer)), slots.Urgent},
	} {
		t.Run(name, func(t *testing.T) {
			stripped, err := StripTransform()(test.cr)
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, test.want, priorityOf(stripped.(*unstructured.Unstructured)))
			wantEqual(t, test.want, priorityOf(test.cr))
		})
	}
}

func TestTheQueueGivesPressingCRsFirst(t *testing.T) {
	watch := finalizerWatch()
	h := handler{watch: &watch, states: &states{}}
	q := priorityqueue.New[reconcile.Request]("test")
	defer q.ShutDown()
	named := func(name string, cr *unstructured.Unstructured) *unstructured.Unstructured {
		cr.SetName(name)
		return cr
	}
	reported := withStatus(map[string]any{"observedGeneration": int64(1)})
	for _, cr := range []*unstructured.Unstructured{
		named("usual", widget(reported)), named("changed", widget()),
		named("finalized", widget(reported, deleting, withFinalizers(ourFinalizer))),
	} {
		h.Create(t.Context(), crCreated{Object: cr, IsInInitialList: true}, q)
	}
	eventually(t, func() bool { return q.Len() == 3 })
	var order []string
	for range 3 {
		req, _ := q.Get()
		order = append(order, req.Name)
	}
	wantEqual(t, []string{"finalized", "changed", "usual"}, order)
}
