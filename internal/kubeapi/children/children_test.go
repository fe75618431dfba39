package children

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/ledger"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/strip"
)

func TestDriftNotifiesAndTheRunsOwnWritesDoNot(t *testing.T) {
	s := newStage(t, Options{}).start().listen()
	child := s.runWrites(configMaps, object("ConfigMap", "c", ownedBy(widgets, "w"), saying("one")))
	s.live(configMaps)
	child = s.runWrites(configMaps, edited(child, saying("two")))
	s.runWrites(configMaps, object("ConfigMap", "d", ownedBy(widgets, "w")))

	child = s.store(configMaps, edited(child, saying("three")))
	const notification = "Widget ns/w uid-w"
	s.notified(notification)
	child = s.store(configMaps, edited(child, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"a": "b"}) }))
	s.notified(notification)
	s.store(configMaps, edited(child, func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"a": "b"} }))
	s.remove(configMaps, child)
	s.notified(notification)
	s.runWrites(configMaps, object("ConfigMap", "e", ownedBy(widgets, "w"), saying("one")))

	strange := s.store(configMaps, object("ConfigMap", "strange", saying("one")))
	s.store(configMaps, edited(strange, saying("two")))
	s.store(configMaps, object("ConfigMap", "others", ownedBy(gadgets, "g"), saying("one")))
	s.remove(configMaps, object("ConfigMap", "d"))
	s.notified(notification)
	s.store(configMaps, object("ConfigMap", "f", ownedBy(widgets, "w")))
	s.notified(notification)
	want := []string{
		"ConfigMap ns/c changed", "ConfigMap ns/c changed", "ConfigMap ns/c was deleted", "ConfigMap ns/d was deleted", "ConfigMap ns/f was created",
	}
	if diff := cmp.Diff(want, s.whats); diff != "" {
		t.Error(diff)
	}
}

func TestAChangeSaysWhoMadeIt(t *testing.T) {
	written := func(second string, managers ...string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			saying(second)(o)
			var entries []any
			for _, manager := range managers {
				entries = append(entries, map[string]any{"manager": manager, "operation": "Update", "time": "2026-01-02T03:04:" + second + "Z", "fieldsV1": map[string]any{"f:data": map[string]any{"f:" + manager: map[string]any{}}}})
			}
			_ = unstructured.SetNestedSlice(o.Object, entries, "metadata", "managedFields")
		}
	}
	s := newStage(t, Options{}).start().listen()
	child := s.runWrites(configMaps, object("ConfigMap", "c", ownedBy(widgets, "w"), written("05", "run")))
	s.live(configMaps)
	const notification = "Widget ns/w uid-w"
	child = s.store(configMaps, edited(child, written("05", "run", "rival"), saying("other")))
	s.notified(notification)
	child = s.store(configMaps, edited(child, written("06", "editor")))
	s.notified(notification)
	s.store(configMaps, edited(child, written("06", "editor"), saying("less"))) // It leaves no time.
	s.notified(notification)
	if diff := cmp.Diff([]string{"ConfigMap ns/c changed by rival (data.rival)", "ConfigMap ns/c changed by editor", "ConfigMap ns/c changed"}, s.whats); diff != "" {
		t.Error(diff)
	}
}

func TestARunDeletesItsChild(t *testing.T) {
	for why, answer := range map[string]func(*unstructured.Unstructured) access.Response{
		"the answer is a Status": func(o *unstructured.Unstructured) access.Response { return access.Response{Code: 200, UID: o.GetUID()} },
		"the answer is the object": func(o *unstructured.Unstructured) access.Response {
			return access.Response{Code: 202, Objects: []*unstructured.Unstructured{o}}
		},
	} {
		t.Run(why, func(t *testing.T) {
			s := newStage(t, Options{}).start().listen()
			child := s.runWrites(configMaps, object("ConfigMap", "c", annotatedFor(widgets, "ns/w")))
			s.live(configMaps)
			afterWrite := s.BeforeWrite(session(), writeTo("delete", configMaps, child))
			s.remove(configMaps, child)
			afterWrite(answer(child))
			s.runWrites(configMaps, object("ConfigMap", "c", annotatedFor(widgets, "ns/w")))
			s.remove(configMaps, child) // By somebody: the next one of the name.
			s.notified("Widget ns/w")
		})
	}
}

// TestAWriteWithoutAKnownResultIsNotForeign lets the run's own events come, whose writes nobody
// knows the result of. They trigger nothing, and the causes are told.
func TestAWriteWithoutAKnownResultIsNotForeign(t *testing.T) {
	var counted []access.Cause
	s := newStage(t, Options{OnUnknownWrite: func(cause access.Cause) { counted = append(counted, cause) }}).start().listen()
	child := s.runWrites(configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")))
	s.live(configMaps)
	unknown := func(verb string, cause access.Cause, deed func()) {
		afterWrite := s.BeforeWrite(session(), writeTo(verb, configMaps, child))
		deed()
		afterWrite(access.Response{Unknown: cause})
	}
	unknown("update", access.ServerError, func() { child = s.store(configMaps, edited(child, saying("one"))) })
	unknown("update", access.NoResponse, func() { child = s.store(configMaps, edited(child, saying("two"))) })
	unknown("delete", access.NoResponse, func() { s.remove(configMaps, child) })
	s.store(configMaps, object("ConfigMap", "last", ownedBy(widgets, "w")))
	s.notified("Widget ns/w uid-w") // of the last one alone
	if diff := cmp.Diff([]string{"ConfigMap ns/last was created"}, s.whats); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]access.Cause{access.ServerError, access.NoResponse, access.NoResponse}, counted); diff != "" {
		t.Error(diff)
	}
	told := 0
	for _, line := range s.log {
		if strings.Contains(line, "the API server neither confirmed nor refused a run's write") {
			told++
		}
	}
	if told != 2 {
		t.Errorf("want each cause logged once, got %d lines", told)
	}
}

func TestAnUnknownResultExplainsNothingLater(t *testing.T) {
	s := newStage(t, Options{})
	s.timing.unidentified = 100 * time.Millisecond
	s.start().listen()
	child := s.runWrites(configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")))
	s.live(configMaps)
	const writes = 250
	for range writes {
		s.BeforeWrite(session(), writeTo("update", configMaps, child))(access.Response{Unknown: access.NoResponse})
	}
	edits := 0
	s.eventually(func() bool {
		edits++
		child = s.store(configMaps, edited(child, saying(fmt.Sprint(edits))))
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.notifications) > 0
	}, func() string { return "a person's edits are not noticed any more" })
	if edits > writes {
		t.Errorf("each of %d writes has explained an edit", writes)
	}
}

func TestAnEndedNamespaceIsGone(t *testing.T) {
	now := metav1.Now()
	ending := func(kind string, finalizers []string, inSpec ...any) *unstructured.Unstructured {
		o := object(kind, "o")
		o.SetDeletionTimestamp(&now)
		o.SetFinalizers(finalizers)
		o.Object["spec"] = map[string]any{"finalizers": inSpec}
		return o
	}
	for why, test := range map[string]struct {
		object *unstructured.Unstructured
		want   bool
	}{
		"the last finalizer has gone":               {ending("ConfigMap", nil), true},
		"one is left":                               {ending("ConfigMap", []string{"f"}), false},
		"a Namespace has one more in its spec":      {ending("Namespace", nil, "kubernetes"), false},
		"a call of finalize has emptied its spec":   {ending("Namespace", nil), true},
		"another kind has what it wants there":      {ending("ConfigMap", nil, "kubernetes"), true},
		"the deletion of a Namespace has not begun": {object("Namespace", "o"), false},
	} {
		if got := isGone(test.object); got != test.want {
			t.Errorf("%s: gone: %v", why, got)
		}
	}
}

func TestWhichKindsAreWatched(t *testing.T) {
	plain := Watch{GVK: widgets, Dependents: true}
	for why, test := range map[string]struct {
		watch    Watch
		resource schema.GroupVersionResource
		object   *unstructured.Unstructured
		edit     func(*access.Write, *access.Response)
		want     bool
	}{
		"a child by reference":                {plain, configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")), nil, true},
		"a child by annotation":               {plain, configMaps, object("ConfigMap", "c", inNamespace("far"), annotatedFor(widgets, "ns/w")), nil, true},
		"what belongs to nobody":              {plain, configMaps, object("ConfigMap", "c"), nil, false},
		"what belongs to another CR":          {plain, configMaps, object("ConfigMap", "c", ownedBy(widgets, "v")), nil, false},
		"an annotation for another CR":        {plain, configMaps, object("ConfigMap", "c", annotatedFor(widgets, "ns/v")), nil, false},
		"an annotation for another kind":      {plain, configMaps, object("ConfigMap", "c", annotatedFor(gadgets, "ns/w")), nil, false},
		"a watch without dependents":          {Watch{GVK: widgets}, configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")), nil, false},
		"a kind of the blacklist":             {Watch{GVK: widgets, Dependents: true, Blacklist: []schema.GroupKind{{Kind: "ConfigMap"}}}, configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")), nil, false},
		"a blacklist of another group":        {Watch{GVK: widgets, Dependents: true, Blacklist: []schema.GroupKind{{Group: "x.io", Kind: "ConfigMap"}}}, configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")), nil, true},
		"a cluster-scoped one by annotation":  {plain, roles, object("ClusterRole", "c", annotatedFor(widgets, "ns/w")), nil, false},
		"a cluster-scoped one where asked":    {Watch{GVK: widgets, Dependents: true, ClusterScoped: true}, roles, object("ClusterRole", "c", annotatedFor(widgets, "ns/w")), nil, true},
		"a cluster-scoped one by reference":   {plain, roles, object("ClusterRole", "c", ownedBy(widgets, "w")), nil, true},
		"an Event":                            {plain, events, object("Event", "c", ownedBy(widgets, "w")), nil, false},
		"a refused write":                     {plain, configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")), func(_ *access.Write, a *access.Response) { a.Code = 403 }, false},
		"a write without an answer":           {plain, configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")), func(_ *access.Write, a *access.Response) { *a = access.Response{} }, false},
		"a deletion":                          {plain, configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")), func(w *access.Write, _ *access.Response) { w.Verb = "delete" }, false},
		"a subresource":                       {plain, configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")), func(w *access.Write, _ *access.Response) { w.Subresource = "scale" }, false},
		"an answer whose object nobody reads": {plain, configMaps, object("ConfigMap", "c"), func(_ *access.Write, a *access.Response) { a.Objects = nil }, false},
	} {
		t.Run(why, func(t *testing.T) {
			s := newStage(t, Options{Watches: []Watch{test.watch}})
			write, answer := writeTo("create", test.resource, test.object), access.Response{Code: 201, Objects: []*unstructured.Unstructured{test.object}}
			if test.edit != nil {
				test.edit(&write, &answer)
			}
			s.BeforeWrite(session(), write)(answer)
			if got := s.isWatched(test.resource); got != test.want {
				t.Errorf("watched: %v", got)
			}
		})
	}
	t.Run("a run of no watch", func(t *testing.T) {
		s := newStage(t, Options{Watches: []Watch{{GVK: gadgets, Dependents: true}}})
		child := object("ConfigMap", "c", ownedBy(widgets, "w"))
		s.BeforeWrite(session(), writeTo("create", configMaps, child))(access.Response{Code: 201, Objects: []*unstructured.Unstructured{child}})
		if s.isWatched(configMaps) {
			t.Error("watched")
		}
	})
}

func TestOwners(t *testing.T) {
	for why, test := range map[string]struct {
		object *unstructured.Unstructured
		want   []string
	}{
		"nobody": {object("ConfigMap", "c"), nil},
		"a reference, whose owner's scope is open": {object("ConfigMap", "c", ownedBy(widgets, "w")), []string{"Widget.g.io ns/w uid-w", "Widget.g.io /w uid-w"}},
		"a cluster-scoped object's":                {object("ClusterRole", "c", ownedBy(widgets, "w")), []string{"Widget.g.io /w uid-w"}},
		"an annotation":                            {object("ConfigMap", "c", annotatedFor(widgets, "far/w")), []string{"Widget.g.io far/w "}},
		"an annotation for a cluster-scoped CR":    {object("ConfigMap", "c", annotatedFor(widgets, "/w")), []string{"Widget.g.io /w "}},
		"an annotation without a namespace":        {object("ConfigMap", "c", annotatedFor(widgets, "w")), []string{"Widget.g.io /w "}},
		"an empty annotation":                      {object("ConfigMap", "c", annotatedFor(widgets, "")), nil},
		"several":                                  {object("ClusterRole", "c", ownedBy(widgets, "w"), ownedBy(gadgets, "g"), annotatedFor(widgets, "ns/w")), []string{"Widget.g.io /w uid-w", "Gadget.g.io /g uid-g", "Widget.g.io ns/w "}},
		"a reference that is none": {object("ClusterRole", "c", func(o *unstructured.Unstructured) {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "a/b/c", Kind: "K", Name: "n"}})
		}), nil},
	} {
		t.Run(why, func(t *testing.T) {
			var got []string
			for _, owner := range namedOwners(test.object) {
				got = append(got, owner.cr.Kind.String()+" "+owner.cr.NamespacedName.String()+" "+string(owner.uid))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAChangeNotifiesTheCRsItConcerns(t *testing.T) {
	s := newStage(t, Options{Watches: []Watch{{GVK: widgets, Dependents: true}, {GVK: gadgets, Dependents: true, ClusterScoped: true}}, Record: &memoryRecord{all: map[string][]Kind{
		"Widget.g.io": {{Version: "v1", Resource: "configmaps", Namespaced: true}},
		"Gadget.g.io": {{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles", Written: written("r", "ns", "g", gadgets)}},
	}}},
		object("ConfigMap", "shared", annotatedFor(widgets, "ns/a"), ownedBy(widgets, "b"), saying("one"), func(o *unstructured.Unstructured) { o.SetUID("s"); o.SetResourceVersion("1") }),
		object("ClusterRole", "r", annotatedFor(gadgets, "ns/g"), ownedBy(widgets, "w"), func(o *unstructured.Unstructured) { o.SetUID("r"); o.SetResourceVersion("1") }),
	).start().listen()
	s.live(configMaps)
	s.live(roles)
	s.store(configMaps, object("ConfigMap", "shared", annotatedFor(widgets, "ns/a"), ownedBy(widgets, "b"), saying("two"), func(o *unstructured.Unstructured) { o.SetUID("s") }))
	s.notified("Widget ns/a", "Widget ns/b uid-b")
	// ClusterRoles are watched for gadgets alone.
	s.store(roles, object("ClusterRole", "r", annotatedFor(gadgets, "ns/g"), ownedBy(widgets, "w"), saying("two"), func(o *unstructured.Unstructured) { o.SetUID("r") }))
	s.notified("Gadget ns/g")
	// Without its annotations the object is no child of ns/a any more.
	s.store(configMaps, object("ConfigMap", "shared", ownedBy(widgets, "b"), saying("two"), func(o *unstructured.Unstructured) { o.SetUID("s") }))
	s.notified("Widget ns/a", "Widget ns/b uid-b")
	s.remove(configMaps, object("ConfigMap", "shared"))
	s.notified("Widget ns/b uid-b")
}

func TestNotificationsWaitForSubscribe(t *testing.T) {
	s := newStage(t, Options{}).start()
	child := s.runWrites(configMaps, object("ConfigMap", "c", annotatedFor(widgets, "ns/w"), saying("one")))
	s.live(configMaps)
	child = s.store(configMaps, edited(child, saying("two")))
	s.remove(configMaps, child)
	s.store(configMaps, object("ConfigMap", "last", annotatedFor(widgets, "ns/last"))) // Told after the others.
	s.eventually(func() bool {
		s.queues[widgets.GroupKind()].mu.Lock()
		defer s.queues[widgets.GroupKind()].mu.Unlock()
		return len(s.queues[widgets.GroupKind()].waiting) == 2
	}, func() string { return "no notification" })
	s.listen().notified("Widget ns/w", "Widget ns/last")
	s.Subscribe(t.Context(), Scope{GVK: schema.GroupVersionKind{Kind: "Unknown"}}, nil) // Harmless.
}

func TestTheRecordOutlivesTheManager(t *testing.T) {
	record := &memoryRecord{}
	s := newStage(t, Options{Record: record}).start().listen()
	s.runWrites(configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")))
	s.runWrites(roles, object("ClusterRole", "c", ownedBy(widgets, "w")))
	want := []Kind{
		{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Resource: "clusterroles"},
	}
	s.eventually(func() bool { return slices.Equal(record.of(widgets), want) }, func() string { return cmp.Diff(want, record.of(widgets)) })

	next := newStage(t, Options{Record: record}, object("ConfigMap", "c", ownedBy(widgets, "w"), annotatedFor(widgets, "ns/w"),
		func(o *unstructured.Unstructured) { o.SetUID("u"); o.SetResourceVersion("1") }))
	next.timing.refusalGrace = 200 * time.Millisecond
	next.refuse("clusterroles", apierrors.NewForbidden(roles.GroupResource(), "", nil))
	next.start().listen()
	if !next.isWatched(configMaps) {
		t.Error("the kind is not watched when controllers start")
	}
	next.live(configMaps)
	next.remove(configMaps, object("ConfigMap", "c"))
	next.notified("Widget ns/w uid-w")
	next.logged("cannot watch the kind")
	next.eventually(func() bool { return slices.Equal(record.of(widgets), want[:1]) }, func() string { return cmp.Diff(want[:1], record.of(widgets)) })
	if next.isWatched(roles) {
		t.Error("a forbidden kind is still watched")
	}
	// A run that writes one does not begin that anew at once.
	next.runWrites(roles, object("ClusterRole", "c", ownedBy(widgets, "w")))
	if next.isWatched(roles) {
		t.Error("a forbidden kind is watched again")
	}
}

func TestAKindThatIsNotWantedAnyMoreLeavesTheRecord(t *testing.T) {
	record := &memoryRecord{all: map[string][]Kind{"Widget.g.io": {{Version: "v1", Resource: "configmaps", Namespaced: true}}, "Other.g.io": {{Version: "v1", Resource: "pods"}}}}
	s := newStage(t, Options{Record: record, Watches: []Watch{{GVK: widgets}}}).start()
	s.eventually(func() bool { return len(record.of(widgets)) == 0 }, func() string { return "still recorded" })
	if s.isWatched(configMaps) {
		t.Error("watched")
	}
	if len(record.of(schema.GroupVersionKind{Group: "g.io", Kind: "Other"})) != 1 {
		t.Error("the record of another operator has gone")
	}
}

func TestAKindWithoutChildrenIsWatchedNoLonger(t *testing.T) {
	record := &memoryRecord{}
	const timeout = time.Hour
	s := newStage(t, Options{Record: record, UnusedKindTimeout: timeout}).start().listen()
	kept := s.runWrites(secrets, object("Secret", "s", ownedBy(widgets, "w")))
	child := s.runWrites(configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")))
	s.live(configMaps)
	s.live(secrets)
	has := func(resource schema.GroupVersionResource, want bool) {
		s.eventually(func() bool {
			s.Children.mu.Lock()
			defer s.Children.mu.Unlock()
			return s.kinds[resource.GroupResource()].hasChildOf(widgets.GroupKind()) == want
		}, func() string { return resource.Resource + " has children, or has none" })
	}
	has(secrets, true)
	has(configMaps, true)
	s.store(configMaps, object("ConfigMap", "of-nobody"))
	s.remove(configMaps, child)
	s.notified("Widget ns/w uid-w")
	has(configMaps, false)
	s.maintain(time.Now().Add(timeout / 2))
	if !s.isWatched(configMaps) {
		t.Error("a kind is watched no longer that had children a while ago")
	}
	s.maintain(time.Now().Add(2 * timeout))
	if s.isWatched(configMaps) {
		t.Error("still watched")
	}
	s.eventually(func() bool { return len(record.of(widgets)) == 1 }, func() string { return cmp.Diff(1, record.of(widgets)) })
	if !s.isWatched(secrets) {
		t.Error("a kind with a child is not watched")
	}
	s.store(secrets, edited(kept, saying("two")))
	s.notified("Widget ns/w uid-w")
	s.runWrites(configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")))
	if !s.isWatched(configMaps) {
		t.Error("a new child does not bring its kind back")
	}
}

func TestOneKindsFailureHarmsNoOther(t *testing.T) {
	s := newStage(t, Options{})
	s.refuse("clusterroles", apierrors.NewServiceUnavailable("down"))
	s.start().listen()
	s.runWrites(roles, object("ClusterRole", "c", ownedBy(widgets, "w")))
	child := s.runWrites(configMaps, object("ConfigMap", "c", annotatedFor(widgets, "ns/w")))
	s.live(configMaps)
	s.remove(configMaps, child)
	s.notified("Widget ns/w")
	if !s.isWatched(roles) {
		t.Error("a kind that is down was given up")
	}
	s.refuse("clusterroles", nil)
	s.live(roles)
}

func TestNamespacesLimitWhatIsWatched(t *testing.T) {
	s := newStage(t, Options{Namespaces: []string{"ns", "other"}}).start().listen()
	here := s.runWrites(configMaps, object("ConfigMap", "c", annotatedFor(widgets, "ns/w")))
	far := s.runWrites(configMaps, object("ConfigMap", "c", inNamespace("far"), annotatedFor(widgets, "ns/w")))
	s.runWrites(roles, object("ClusterRole", "c", ownedBy(widgets, "w")))
	s.live(configMaps)
	s.live(roles)
	var got []string
	for _, key := range s.options.Informers.Keys() {
		got = append(got, key.Resource.Resource+" "+key.Namespace)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"clusterroles ", "configmaps ns", "configmaps other"}, got); diff != "" {
		t.Error(diff)
	}
	s.remove(configMaps, far)
	s.remove(configMaps, here)
	s.notified("Widget ns/w")
}

func TestAChangedReferenceNotifiesItsCR(t *testing.T) {
	s := newStage(t, Options{}, object("Secret", "known", saying("one"), func(o *unstructured.Unstructured) { o.SetUID("k"); o.SetResourceVersion("1") })).start().listen()
	to := Objects{secret: {{Namespace: "ns", Name: "known"}, {Namespace: "ns", Name: "later"}}}
	w := types.NamespacedName{Namespace: "ns", Name: "w"}
	before := s.State(t.Context(), widgets, w, to)
	if diff := cmp.Diff("Secret ns/known k version 1\nSecret ns/later absent\n", before); diff != "" {
		t.Error(diff)
	}
	s.Refers(gadgets, types.NamespacedName{Namespace: "ns", Name: "g"}, Objects{secret: {{Namespace: "ns", Name: "known"}}})

	known := s.store(secrets, object("Secret", "known", saying("two"), func(o *unstructured.Unstructured) { o.SetUID("k") }))
	s.notified("Widget ns/w", "Gadget ns/g")
	if after := s.State(t.Context(), widgets, w, to); after == before || after == "" {
		t.Errorf("the state is still %q", after)
	}
	later := s.store(secrets, object("Secret", "later"))
	s.notified("Widget ns/w")
	s.store(secrets, object("Secret", "later", inNamespace("far")))
	s.remove(secrets, later)
	s.notified("Widget ns/w")
	s.runWrites(secrets, edited(known, saying("by the run of w")))
	s.notified("Gadget ns/g")

	s.Refers(widgets, w, Objects{secret: {{Namespace: "ns", Name: "another"}}})
	s.remove(secrets, known)
	s.notified("Gadget ns/g")
	s.Refers(widgets, w, nil)
	s.store(secrets, object("Secret", "another"))
	s.Refers(widgets, w, Objects{secret: {{Namespace: "ns", Name: "last"}}})
	s.store(secrets, object("Secret", "last"))
	s.notified("Widget ns/w")
}

func TestStatusFieldsOfReferences(t *testing.T) {
	fields := strip.StatusFields{{Kind: "Secret"}: {"ready"}}
	transformer, err := strip.New(fields)
	if err != nil {
		t.Fatal(err)
	}
	secret := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	saysReady := func(ready any) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			o.SetUID("k")
			o.SetGeneration(1)
			o.Object["status"] = map[string]any{"ready": ready, "seen": o.GetResourceVersion()}
		}
	}
	known := object("Secret", "known", saysReady(false), ownedBy(gadgets, "g"))
	s := newStage(t, Options{Transformer: transformer, Watches: []Watch{{GVK: widgets, Dependents: true, StatusFields: fields}, {GVK: gadgets, Dependents: true}}}, known).start().listen()
	w, to := types.NamespacedName{Namespace: "ns", Name: "w"}, Objects{secret: {{Namespace: "ns", Name: "known"}}}
	before := s.State(t.Context(), widgets, w, to)
	s.Refers(gadgets, types.NamespacedName{Namespace: "ns", Name: "h"}, to)

	known = s.store(secrets, edited(known, saysReady(false)))
	known = s.store(secrets, edited(known, saysReady(true)))
	s.notified("Widget ns/w") // Once, and no Gadget: neither the owner nor the other that refers to it.
	after := s.State(t.Context(), widgets, w, to)
	if after == before || after == "" {
		t.Errorf("the state is still %q", after)
	}
	known = s.runWrites(secrets, edited(known, saysReady(false)))
	s.notified("Widget ns/w")
	if again := s.State(t.Context(), widgets, w, to); again != before {
		t.Errorf("the state is %q, want %q as before", again, before)
	}
	s.remove(secrets, known)
	s.notified("Widget ns/w", "Gadget ns/h")
}

func TestReferencesToWhatCannotBeRead(t *testing.T) {
	w := types.NamespacedName{Namespace: "ns", Name: "w"}
	t.Run("the kind is not served, and comes", func(t *testing.T) {
		s := newStage(t, Options{}).start().listen()
		s.mu.Lock()
		s.served = nil
		s.mu.Unlock()
		if got := s.State(t.Context(), widgets, w, Objects{secret: {{Namespace: "ns", Name: "s"}}}); got != "Secret can't be read\n" {
			t.Errorf("state %q", got)
		}
		s.mu.Lock()
		s.served = []metav1.APIResource{{Name: "secrets", Kind: "Secret", Namespaced: true}}
		s.mu.Unlock()
		s.notified("Widget ns/w")
	})
	t.Run("the kind is not served, and the CR goes", func(t *testing.T) {
		s := newStage(t, Options{}).start()
		s.mu.Lock()
		s.served = nil
		s.mu.Unlock()
		s.State(t.Context(), widgets, w, Objects{secret: {{Namespace: "ns", Name: "s"}}})
		s.Refers(widgets, w, nil)
		s.Children.mu.Lock()
		defer s.Children.mu.Unlock()
		if left := s.references.kinds[secret].waiting; len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
	t.Run("the kind is down for long, which no run waits for", func(t *testing.T) {
		s := newStage(t, Options{})
		s.refuse("secrets", apierrors.NewServiceUnavailable("down"))
		s.start().listen()
		s.Refers(widgets, w, Objects{secret: {{Namespace: "ns", Name: "s"}}})
		s.eventually(func() bool { return s.isWatched(secrets) }, func() string { return "not watched" })
		s.Children.mu.Lock()
		s.kinds[secrets.GroupResource()].since = time.Now().Add(-time.Minute)
		s.Children.mu.Unlock()
		if left := s.syncTimeout(Objects{secret: {{Namespace: "ns", Name: "s"}}}); left > 0 {
			t.Errorf("it waits for another %s", left)
		}
		if got := s.State(t.Context(), widgets, w, Objects{secret: {{Namespace: "ns", Name: "s"}}}); got != "" {
			t.Errorf("state %q", got)
		}
		s.refuse("secrets", nil)
		s.notified("Widget ns/w")
	})
	t.Run("the kind is forbidden in another namespace", func(t *testing.T) {
		s := newStage(t, Options{Namespaces: []string{"ns", "other"}})
		s.refuse("secrets in other", apierrors.NewForbidden(secrets.GroupResource(), "", nil))
		s.start().listen()
		if got := s.State(t.Context(), widgets, w, Objects{secret: {{Namespace: "ns", Name: "s"}}}); got != "Secret ns/s absent\n" {
			t.Errorf("state %q", got)
		}
	})
	t.Run("the kind is forbidden, and becomes allowed", func(t *testing.T) {
		s := newStage(t, Options{})
		s.refuse("secrets", apierrors.NewForbidden(secrets.GroupResource(), "", nil))
		s.start().listen()
		if got := s.State(t.Context(), widgets, w, Objects{secret: {{Namespace: "ns", Name: "s"}}}); got != "Secret can't be read\n" {
			t.Errorf("state %q", got)
		}
		s.refuse("secrets", nil)
		s.notified("Widget ns/w")
	})
	t.Run("nobody answers, until the run gives up", func(t *testing.T) {
		s := newStage(t, Options{})
		s.discoveryDown = true
		s.start().listen()
		ctx, cancel := contextWithTimeout(t, 100*time.Millisecond)
		defer cancel()
		if got := s.State(ctx, widgets, w, Objects{secret: {{Namespace: "ns", Name: "s"}}}); got != "" {
			t.Errorf("state %q", got)
		}
		s.mu.Lock()
		s.discoveryDown = false
		s.mu.Unlock()
		s.notified("Widget ns/w")
	})
	t.Run("the kind is referred to again after long, which is waited for", func(t *testing.T) {
		s := newStage(t, Options{}).start().listen()
		to := Objects{secret: {{Namespace: "ns", Name: "s"}}}
		for _, before := range []Objects{{secret: nil}, to} {
			s.State(t.Context(), widgets, w, before)
			s.Refers(widgets, w, nil)
			s.Children.mu.Lock()
			for _, kind := range s.references.kinds {
				kind.since = time.Now().Add(-time.Hour)
			}
			for _, f := range s.kinds {
				s.unwatch(f.kind.resource().GroupResource(), f)
			}
			s.Children.mu.Unlock()
			if got := s.State(t.Context(), widgets, w, to); got != "Secret ns/s absent\n" {
				t.Errorf("state %q", got)
			}
		}
	})
	t.Run("nothing is referred to", func(t *testing.T) {
		s := newStage(t, Options{})
		if got := s.State(t.Context(), widgets, w, Objects{secret: nil}); got != "\n" {
			t.Errorf("state %q", got)
		}
	})
}

// A kind that is both, a child's and a referenced one, has one informer.
func TestAReferencedChildNotifiesOnce(t *testing.T) {
	s := newStage(t, Options{}).start().listen()
	child := s.runWrites(secrets, object("Secret", "s", annotatedFor(widgets, "ns/w")))
	s.State(t.Context(), widgets, types.NamespacedName{Namespace: "ns", Name: "w"}, Objects{secret: {{Namespace: "ns", Name: "s"}}})
	s.live(secrets)
	s.store(secrets, edited(child, saying("two")))
	s.notified("Widget ns/w")
	if n := len(s.options.Informers.Keys()); n != 1 {
		t.Errorf("%d informers", n)
	}
}

func TestAnObjectInPlaceOfAnother(t *testing.T) {
	s := newStage(t, Options{}).start().listen()
	child := s.runWrites(configMaps, object("ConfigMap", "c", annotatedFor(widgets, "ns/w")))
	s.live(configMaps)
	// As after a new list: one event shows the end of one object and another one.
	s.store(configMaps, edited(child, func(o *unstructured.Unstructured) { o.SetUID("another"); o.SetAnnotations(nil) }))
	s.notified("Widget ns/w")
}

// TestAChildOfAPredecessorThatGoes: it is notification to its successor, which has another UID,
// where that has written the child.
func TestAChildOfAPredecessorThatGoes(t *testing.T) {
	s := newStage(t, Options{}).start().listen()
	s.runWrites(configMaps, object("ConfigMap", "other", ownedBy(widgets, "w")))
	s.live(configMaps)
	inherited := func(name string, more ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
		child := object("ConfigMap", name, ownedBy(widgets, "w"), saying("one"))
		references := child.GetOwnerReferences()
		references[0].UID = "uid-before"
		child.SetOwnerReferences(references)
		return edited(child, more...)
	}
	unseen := s.store(configMaps, inherited("unseen"))
	s.notified("Widget ns/w uid-before")
	s.remove(configMaps, unseen)
	s.notified("Widget ns/w uid-before")

	patched := s.store(configMaps, inherited("patched"))
	s.notified("Widget ns/w uid-before")
	s.runWrites(configMaps, edited(patched, saying("two")))
	s.remove(configMaps, patched)
	s.notified("Widget ns/w")

	both := s.store(configMaps, inherited("both", ownedBy(widgets, "w")))
	s.notified("Widget ns/w")
	s.remove(configMaps, both)
	s.notified("Widget ns/w")
}

// A change, which may wait for its run, hides no change of the children's status.
func TestANotificationIsQueuedOnce(t *testing.T) {
	i := newNotificationQueue()
	for _, what := range []string{"", "Secret ns/s changed", "", "ConfigMap ns/c changed"} {
		current := 0
		if what == "" {
			current = 1
		}
		i.add(notification{types.NamespacedName{Name: "a"}, "u", what, current})
		i.add(notification{types.NamespacedName{Name: "b"}, "u", what, 0})
	}
	var got []string
	for {
		n, ok := i.pop()
		if !ok {
			break
		}
		got = append(got, fmt.Sprintf("%s: %s, %d became Current", n.cr.Name, n.what, n.current))
	}
	if diff := cmp.Diff([]string{
		"a: , 2 became Current", "b: , 0 became Current", "a: Secret ns/s changed, 0 became Current", "b: Secret ns/s changed, 0 became Current",
	}, got); diff != "" {
		t.Error(diff)
	}
}

func TestMergeCRsPrefersAUID(t *testing.T) {
	a := ledger.CR{NamespacedName: types.NamespacedName{Name: "a"}}
	for _, parts := range [][2]map[ledger.CR]types.UID{{{a: ""}, {a: "u"}}, {{a: "u"}, {a: ""}}} {
		if got := mergeCRs(parts[0], parts[1]); got[a] != "u" {
			t.Error(got)
		}
	}
}
