package children

import (
	"maps"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// known waits until the informers show the object as it was stored, and returns what is known.
func (s *stage) known(stored *unstructured.Unstructured) Known {
	s.t.Helper()
	var known Known
	s.eventually(func() bool {
		var live bool
		known, live = s.Known("Secret", secrets, stored.GetNamespace(), stored.GetName())
		return live && known.ResourceVersion == stored.GetResourceVersion()
	}, func() string { return "the informers do not show " + stored.GetName() })
	return known
}

func TestWhatIsKnownDiffersWithWhatOthersChange(t *testing.T) {
	s := newStage(t, Options{}).start()
	// The question begins to watch the kind. Its informer may be filled before the answer.
	if known, live := s.Known("Secret", secrets, "ns", "a"); known != (Known{}) {
		t.Errorf("an object that nobody has made: %+v, %t", known, live)
	}
	stored := s.runWrites(secrets, object("Secret", "a", ownedBy(widgets, "w"), saying("hello")))
	first := s.known(stored)
	if first.UID != stored.GetUID() {
		t.Errorf("UID %s", first.UID)
	}
	if absent, live := s.Known("Secret", secrets, "ns", "b"); !live || absent != (Known{}) {
		t.Errorf("an object that is not there: %+v, %t", absent, live)
	}
	for why, c := range map[string]struct {
		edit func(*unstructured.Unstructured)
		same bool
	}{
		"its status":          {func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"a": "b"} }, true},
		"its data":            {saying("theirs"), false},
		"its owners":          {func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) }, false},
		"a flag of its owner": {func(o *unstructured.Unstructured) { controls(o) }, false},
		"its deletion":        {func(o *unstructured.Unstructured) { now := metav1.Now(); o.SetDeletionTimestamp(&now) }, false},
	} {
		if got := s.known(s.store(secrets, edited(stored, c.edit))); (got.Content == first.Content) != c.same {
			t.Errorf("%s: before %s, now %s", why, first.Content, got.Content)
		}
	}
	if got := s.known(s.store(secrets, stored)); got.Content != first.Content {
		t.Error("what is as it was has another content")
	}
}

func controls(o *unstructured.Unstructured) {
	owners, yes := o.GetOwnerReferences(), true
	owners[0].Controller = &yes
	o.SetOwnerReferences(owners)
}

func TestAllRevisionsOfASeriesAreKnown(t *testing.T) {
	s := newStage(t, Options{}).start()
	for _, name := range []string{"r.v1", "r.v12", "r.v1.v2", "r.vx", "r", "q.v1", "r.v3"} {
		s.known(s.runWrites(secrets, object("Secret", name, ownedBy(widgets, "w"))))
	}
	s.known(s.runWrites(secrets, object("Secret", "r.v4", ownedBy(widgets, "w"), inNamespace("other"))))
	found, live := s.KnownSeries("Secret", secrets, "ns", "r")
	if names := slices.Sorted(maps.Keys(found)); !live || !slices.Equal(names, []string{"r.v1", "r.v12", "r.v3"}) {
		t.Errorf("%t %q", live, names)
	}
	if found["r.v1"].UID == "" || found["r.v1"].Content == "" {
		t.Errorf("%+v", found["r.v1"])
	}
}

func TestNothingIsKnownWhereAKindIsRefusedOrItsNamespaceIsNotWatched(t *testing.T) {
	s := newStage(t, Options{Namespaces: []string{"ns", "other"}})
	s.refuse("secrets in other", apierrors.NewForbidden(secrets.GroupResource(), "", nil))
	s.start()
	s.known(s.runWrites(secrets, object("Secret", "a", ownedBy(widgets, "w"))))
	for _, namespace := range []string{"other", "third"} {
		if _, live := s.Known("Secret", secrets, namespace, "a"); live {
			t.Errorf("%s is known", namespace)
		}
	}
}

// An object that no run marks, as one that is to be kept, may be the only one of its kind.
func TestAKindIsWatchedWhileSomebodyAsks(t *testing.T) {
	s := newStage(t, Options{UnusedKindTimeout: 100 * time.Millisecond}).start()
	stored := s.store(configMaps, object("ConfigMap", "kept", saying("hello")))
	s.eventually(func() bool {
		known, live := s.Known("ConfigMap", configMaps, "ns", "kept")
		return live && known.UID == stored.GetUID()
	}, func() string { return "the object is not known although somebody asks" })
	s.eventually(func() bool { return !s.isWatched(configMaps) }, func() string { return "the kind is watched although nobody asks" })
}

func TestAKindThatIsRefusedIsNotAskedForAgainAtOnce(t *testing.T) {
	s := newStage(t, Options{})
	s.timing.refusalGrace = 10 * time.Millisecond
	s.refuse("configmaps", apierrors.NewForbidden(configMaps.GroupResource(), "", nil))
	s.start()
	s.Known("ConfigMap", configMaps, "ns", "kept")
	s.eventually(func() bool { return !s.isWatched(configMaps) }, func() string { return "a kind that is refused is watched" })
	if _, live := s.Known("ConfigMap", configMaps, "ns", "kept"); live || s.isWatched(configMaps) {
		t.Errorf("live %t, or watched again", live)
	}
}
