package children

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/ledger"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/strip"
)

// conditioned gives an object conditions of kstatus, by type.
func conditioned(status map[string]string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		var conditions []any
		for kind, value := range status {
			conditions = append(conditions, map[string]any{"type": kind, "status": value, "message": kind + " is " + value})
		}
		o.Object["status"] = map[string]any{"conditions": conditions}
	}
}

var (
	well   = conditioned(map[string]string{"Ready": "True"})
	unwell = conditioned(map[string]string{"Ready": "False"})
	failed = conditioned(map[string]string{"Stalled": "True"})
)

// grace is long enough that no test reaches it.
const grace = time.Hour

func healthStage(t *testing.T) *stage {
	t.Helper()
	transformer, err := strip.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	ignored := &HealthRule{Grace: grace, Ignores: func(kind, name string) bool { return kind == "Account" && name == "ignored" }}
	return newStage(t, Options{Transformer: transformer, Watches: []Watch{{GVK: widgets, Dependents: true, Health: ignored}, {GVK: gadgets, Dependents: true}}}).start().listen()
}

var ourWidget = types.NamespacedName{Namespace: "ns", Name: "w"}

// health waits until the health of the widget is known and is that.
func (s *stage) health(all, overdue []string) (next time.Time) {
	s.t.Helper()
	var got Health
	s.eventually(func() bool {
		got = s.Health(widgets, ourWidget)
		return got.Known && cmp.Equal(got.All, all) && cmp.Equal(got.Overdue, overdue)
	}, func() string { return cmp.Diff(Health{Known: true, All: all, Overdue: overdue}, got) })
	return got.Next
}

const wordOfC = "Account c: Ready is False"

func TestTheHealthOfChildren(t *testing.T) {
	s := healthStage(t)
	c := s.runWrites(accounts, object("Account", "c", ownedBy(widgets, "w"), unwell))
	s.live(accounts)
	// It has never been Current, but it was there when the watch began: nobody knows.
	s.health([]string{wordOfC}, nil)

	s.store(accounts, edited(c, well))
	if next := s.health(nil, nil); !next.IsZero() {
		t.Errorf("nothing is due, but a look is at %s", next)
	}
	began := time.Now()
	s.store(accounts, edited(c, unwell))
	if next := s.health([]string{wordOfC}, nil); next.Before(began.Add(grace)) {
		t.Errorf("it counts at %s, too early", next)
	}
	s.store(accounts, edited(c, failed))
	s.health([]string{"Account c: Stalled is True"}, []string{"Account c: Stalled is True"})

	s.store(accounts, object("Account", "d", ownedBy(widgets, "w"), unwell)) // Created unwell: it counts at once.
	s.store(accounts, object("Account", "ignored", ownedBy(widgets, "w"), unwell))
	s.store(accounts, object("Account", "others", ownedBy(gadgets, "g"), unwell))
	s.store(accounts, object("Account", "nobodys", unwell))
	both := []string{"Account c: Stalled is True", "Account d: Ready is False"}
	s.health(both, both)
	s.remove(accounts, object("Account", "c"))
	s.remove(accounts, object("Account", "d"))
	s.health(nil, nil)
}

// The first list of a kind may be in the informer's store while its events still wait for the lock.
func TestHealthOfChildrenInAFirstListWhoseEventsAreStillToCome(t *testing.T) {
	s := healthStage(t)
	s.store(accounts, object("Account", "c", ownedBy(widgets, "w"), unwell))
	kind := Kind{Group: accounts.Group, Version: accounts.Version, Kind: "Account", Resource: accounts.Resource, Namespaced: true}
	s.Children.mu.Lock()
	informer := s.watchKind(kind).informers[0]
	s.eventually(func() bool { return len(informer.Store().List()) == 1 }, func() string { return "the list is not in the store" })
	s.watchFor(widgets.GroupKind(), kind)
	s.Children.mu.Unlock()
	s.live(accounts)
	s.health([]string{wordOfC}, nil)
}

// The watch may show a child before the response to the write that makes it one has come: the first child of a
// kind that another watch has, and one outside of the CR's namespace.
func TestHealthOfChildrenThatTheWatchShowsFirst(t *testing.T) {
	s := healthStage(t)
	gadget := &access.Session{Owner: access.Owner{GVK: gadgets, Namespace: "ns", Name: "g", UID: "uid-g"}}
	theirs := object("Account", "theirs", ownedBy(gadgets, "g"))
	afterWrite := s.BeforeWrite(gadget, writeTo("update", accounts, theirs))
	afterWrite(access.Response{Code: 200, Objects: []*unstructured.Unstructured{s.store(accounts, theirs)}})
	s.live(accounts)
	late := func(child *unstructured.Unstructured, marker string, want ...sick) {
		t.Helper()
		afterWrite := s.BeforeWrite(session(), writeTo("update", accounts, child))
		stored := s.store(accounts, child)
		s.mu.Lock()
		s.notifications = nil
		s.mu.Unlock()
		s.store(accounts, object("Account", marker, ownedBy(gadgets, "g")))
		s.eventually(func() bool { // Its event has come after the child's.
			s.mu.Lock()
			defer s.mu.Unlock()
			return slices.Contains(s.notifications, "Gadget ns/g uid-g")
		}, func() string { return "no event of " + marker })
		afterWrite(access.Response{Code: 200, Objects: []*unstructured.Unstructured{stored}})
		s.Children.mu.Lock()
		defer s.Children.mu.Unlock()
		got := slices.Collect(maps.Values(s.healths.sick[ledger.CR{Kind: widgets.GroupKind(), NamespacedName: ourWidget}]))
		slices.SortFunc(got, func(a, b sick) int { return strings.Compare(a.text, b.text) })
		if !slices.Equal(got, want) {
			t.Errorf("got %+v", got)
		}
	}
	c, far := sick{text: wordOfC}, sick{text: "Account far: Ready is False"}
	late(object("Account", "c", ownedBy(widgets, "w"), unwell), "first", c)
	late(object("Account", "far", inNamespace("elsewhere"), annotatedFor(widgets, "ns/w"), unwell), "second", c, far)
}

// A change of health alone leads to a notification without a text, which runs nothing.
func TestHealthNotifiesWithoutARun(t *testing.T) {
	s := healthStage(t)
	c := s.runWrites(accounts, object("Account", "c", ownedBy(widgets, "w"), well))
	s.live(accounts)
	s.health(nil, nil)
	s.store(accounts, edited(c, unwell))
	s.eventually(func() bool { // It may have been told before that the health is known.
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Contains(s.notifications, "Widget ns/w uid-w")
	}, func() string { return "no notification" })
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.whats, func(what string) bool { return what != "" }) {
		t.Errorf("it would run because of %q", s.whats)
	}
}

// A watch without health counts too. An object that is Current from its creation on does not count, nor
// does one that the CR does not own.
func TestChildrenThatBecomeCurrentAreCounted(t *testing.T) {
	s := newStage(t, Options{}).start().listen()
	c := s.runWrites(accounts, object("Account", "c", ownedBy(widgets, "w"), unwell))
	s.live(accounts)
	counted := func(want int) {
		t.Helper()
		got := 0
		s.eventually(func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			got = s.current
			return got == want
		}, func() string { return fmt.Sprintf("%d children became Current, not %d", got, want) })
	}
	s.store(accounts, edited(c, well))
	counted(1)
	s.store(accounts, edited(c, unwell))
	s.store(accounts, object("Account", "nobodys", unwell))
	s.store(accounts, object("Account", "nobodys", well))
	s.store(accounts, object("Account", "current", ownedBy(widgets, "w"), well))
	s.store(accounts, edited(c, well))
	counted(2)
}

// A field of a child is what the child has now, and a change of it is told without a text.
func TestFieldsOfChildren(t *testing.T) {
	transformer, err := strip.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	const path = "{.status.ports[0].number}"
	transformer.Keep(map[string][]string{"Account": {path, "{.status}", "{.missing}"}})
	s := newStage(t, Options{Transformer: transformer, Watches: []Watch{{GVK: widgets, Dependents: true, StatusFrom: map[string]ChildField{
		"port":  {Kind: "Account", NameFor: func(cr string) string { return cr + "-c" }, Path: path},
		"whole": {Kind: "Account", NameFor: func(cr string) string { return cr + "-c" }, Path: "{.status}"},
		"other": {Kind: "Deployment", NameFor: func(string) string { return "d" }, Path: path},
	}}}}).start().listen()
	port := func(number int64) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			o.Object["status"] = map[string]any{"ports": []any{map[string]any{"number": number}}}
		}
	}
	shown := func(want map[string]any) {
		t.Helper()
		var got map[string]any
		s.eventually(func() bool { got = s.StatusFrom(widgets, ourWidget); return cmp.Equal(got, want) }, func() string { return cmp.Diff(want, got) })
	}
	shown(map[string]any{})
	s.Known("Account", accounts, "ns", "w-c") // A comparison may be the first that asks for the kind.
	c := s.runWrites(accounts, object("Account", "w-c", ownedBy(widgets, "w"), port(80)))
	shown(map[string]any{"port": int64(80), "whole": nil})
	s.store(accounts, edited(c, port(81)))
	shown(map[string]any{"port": int64(81), "whole": nil})
	s.eventually(func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Contains(s.whats, "")
	}, func() string { return "no notification" })
	s.remove(accounts, object("Account", "w-c"))
	s.store(accounts, object("Account", "w-c", port(82))) // It is nobody's.
	shown(map[string]any{"port": nil, "whole": nil})
}

// Two groups may have a kind of the same name: the one that has the field counts, whenever it is asked.
func TestAFieldOfOneOfTwoKindsOfAName(t *testing.T) {
	transformer, err := strip.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	const path = "{.status.port}"
	transformer.Keep(map[string][]string{"Account": {path}})
	others := schema.GroupVersionResource{Group: "b.io", Version: "v1", Resource: "accounts"}
	kindOf[others] = "Account"
	s := newStage(t, Options{Transformer: transformer, Watches: []Watch{{GVK: widgets, Dependents: true, StatusFrom: map[string]ChildField{
		"port": {Kind: "Account", NameFor: func(cr string) string { return cr + "-c" }, Path: path},
	}}}}).start().listen()
	s.runWrites(accounts, object("Account", "w-c", ownedBy(widgets, "w"), func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"port": int64(80)} }))
	s.runWrites(others, object("Account", "else", ownedBy(widgets, "w"), func(o *unstructured.Unstructured) { o.SetAPIVersion("b.io/v1") }))
	s.live(accounts)
	s.live(others)
	want := map[string]any{"port": int64(80)}
	s.eventually(func() bool { return cmp.Equal(s.StatusFrom(widgets, ourWidget), want) }, func() string { return "no field" })
	for range 50 {
		if diff := cmp.Diff(want, s.StatusFrom(widgets, ourWidget)); diff != "" {
			t.Fatal(diff)
		}
	}
}

// No event of a kind that the watch does not count comes to its CRs.
func TestHealthDoesNotWaitForAKindOfAnotherWatch(t *testing.T) {
	rule := &HealthRule{Ignores: func(string, string) bool { return false }}
	s := newStage(t, Options{Watches: []Watch{{GVK: widgets, Dependents: true, Health: rule, Blacklist: []schema.GroupKind{{Kind: "ConfigMap"}}}, {GVK: gadgets, Dependents: true}}}).start().listen()
	gadget := &access.Session{Owner: access.Owner{GVK: gadgets, Namespace: "ns", Name: "g", UID: "uid-g"}}
	theirs := object("ConfigMap", "theirs", ownedBy(gadgets, "g"))
	afterWrite := s.BeforeWrite(gadget, writeTo("update", configMaps, theirs))
	afterWrite(access.Response{Code: 200, Objects: []*unstructured.Unstructured{s.store(configMaps, theirs)}})
	s.live(configMaps)
	s.runWrites(configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")))
	if got := s.Health(widgets, ourWidget); !got.Known {
		t.Errorf("got %+v", got)
	}
}

// The log says once which kind does not count because nobody watches it.
func TestTheLogNamesChildrenThatDoNotCount(t *testing.T) {
	rule := &HealthRule{Ignores: func(kind, _ string) bool { return kind == "ClusterRole" }}
	s := newStage(t, Options{Watches: []Watch{{GVK: widgets, Dependents: true, Health: rule, Blacklist: []schema.GroupKind{{Kind: "ConfigMap"}, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}}}}})
	s.timing.refusalGrace = 0
	s.start().listen()
	s.runWrites(configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")))
	s.runWrites(configMaps, object("ConfigMap", "d", ownedBy(widgets, "w")))
	s.runWrites(roles, object("ClusterRole", "ignored", ownedBy(widgets, "w")))
	s.refuse("secrets", apierrors.NewForbidden(secrets.GroupResource(), "", nil))
	s.runWrites(secrets, object("Secret", "s", ownedBy(widgets, "w")))
	var got []string
	want := []string{"ConfigMap (blacklist)", "Secret (no right to list and watch)"}
	s.eventually(func() bool {
		s.Children.mu.Lock()
		defer s.Children.mu.Unlock()
		got = s.uncountedOf(widgets.GroupKind())
		return cmp.Equal(got, want) && s.uncountedOf(gadgets.GroupKind()) == nil
	}, func() string { return cmp.Diff(want, got) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if told := strings.Join(s.log, "\n"); strings.Count(told, "does not watch children of this kind") != 2 || !strings.Contains(told, "configmaps") {
		t.Error(told)
	}
}

// After a write of a run, its watch event decides, and not what was seen before it.
func TestHealthWaitsForTheRunsWrites(t *testing.T) {
	s := healthStage(t)
	c := s.runWrites(accounts, object("Account", "c", ownedBy(widgets, "w"), well))
	s.live(accounts)
	s.health(nil, nil)
	unchanged := s.BeforeWrite(session(), writeTo("patch", accounts, c)) // No event comes for it.
	unchanged(access.Response{Code: 200, Objects: []*unstructured.Unstructured{c}})
	if got := s.Health(widgets, ourWidget); !got.Known {
		t.Errorf("got %+v after a write that changed nothing", got)
	}
	afterWrite := s.BeforeWrite(session(), writeTo("update", accounts, c))
	unseen := edited(c, unwell)
	unseen.SetResourceVersion("900")
	afterWrite(access.Response{Code: 200, Objects: []*unstructured.Unstructured{unseen}})
	if got := s.Health(widgets, ourWidget); got.Known {
		t.Errorf("got %+v before the watch has shown the write", got)
	}
	s.version = 899
	s.store(accounts, edited(c, unwell))
	s.health([]string{wordOfC}, nil)
}
