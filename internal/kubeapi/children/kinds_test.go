package children

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
)

// As while an API server starts, which knows no roles and bindings yet.
func TestAKindThatIsRefusedForAMomentIsStillWatched(t *testing.T) {
	record := &memoryRecord{all: map[string][]Kind{"Widget.g.io": {{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true}}}}
	for why, refusal := range map[string]error{
		"it is forbidden":  apierrors.NewForbidden(configMaps.GroupResource(), "", nil),
		"it is not served": apierrors.NewNotFound(configMaps.GroupResource(), ""),
	} {
		t.Run(why, func(t *testing.T) {
			s := newStage(t, Options{Record: record})
			s.refuse("configmaps", refusal)
			s.start().listen()
			s.logged("cannot watch the kind; retrying")
			s.maintain(time.Now()) // It has seen the refusal.
			s.refuse("configmaps", nil)
			s.live(configMaps)
			s.maintain(time.Now().Add(time.Minute))
			child := s.store(configMaps, object("ConfigMap", "c", annotatedFor(widgets, "ns/w")))
			s.notified("Widget ns/w")
			s.remove(configMaps, child)
			s.notified("Widget ns/w")
			if len(record.of(widgets)) != 1 {
				t.Error("the record has lost it")
			}
		})
	}
}

func TestABlacklistCountsForWhatAnEarlierManagerWatched(t *testing.T) {
	record := &memoryRecord{}
	before := newStage(t, Options{Record: record}).start()
	before.runWrites(configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")))
	before.runWrites(secrets, object("Secret", "s", ownedBy(widgets, "w")))
	before.eventually(func() bool { return len(record.of(widgets)) == 2 }, func() string { return "not recorded" })

	s := newStage(t, Options{Record: record, Watches: []Watch{{GVK: widgets, Dependents: true, Blacklist: []schema.GroupKind{{Kind: "ConfigMap"}}}}}).start()
	s.live(secrets)
	if s.isWatched(configMaps) {
		t.Error("a kind of the blacklist is watched")
	}
	want := []Kind{{Version: "v1", Kind: "Secret", Resource: "secrets", Namespaced: true}}
	s.eventually(func() bool { return slices.Equal(record.of(widgets), want) }, func() string { return cmp.Diff(want, record.of(widgets)) })
}

func TestAWriteKeepsItsKindWatched(t *testing.T) {
	s := newStage(t, Options{})
	child := object("ConfigMap", "c", ownedBy(widgets, "w"))
	write := func() {
		s.BeforeWrite(session(), writeTo("update", configMaps, child))(access.Response{Code: 200, Objects: []*unstructured.Unstructured{child}})
	}
	write()
	f := s.kinds[configMaps.GroupResource()]
	f.uses[widgets.GroupKind()] = time.Now().Add(-time.Hour)
	write()
	if last := f.uses[widgets.GroupKind()]; time.Since(last) > time.Minute {
		t.Errorf("its last child seems to have been there %s ago", time.Since(last))
	}
}

// As after an upgrade of its definition.
func TestAKindWhoseVersionHasGoneIsWatchedInAnother(t *testing.T) {
	record := &memoryRecord{all: map[string][]Kind{
		"Widget.g.io": {{Group: "a.io", Version: "v0", Kind: "Account", Resource: "accounts", Namespaced: true}},
		"Gadget.g.io": {{Group: "a.io", Version: "v0", Kind: "Account", Resource: "accounts", Namespaced: true}},
	}}
	s := newStage(t, Options{Record: record})
	s.refuse("accounts v0", apierrors.NewNotFound(oldAccounts.GroupResource(), ""))
	s.start().listen()
	s.logged("cannot watch the kind; retrying")
	child := s.runWrites(accounts, object("Account", "c", ownedBy(widgets, "w"), ownedBy(gadgets, "g")))
	s.live(accounts)
	s.store(accounts, edited(child, saying("two")))
	s.notified("Widget ns/w uid-w", "Gadget ns/g uid-g")
	for _, watch := range []schema.GroupVersionKind{widgets, gadgets} {
		s.eventually(func() bool {
			kinds := record.of(watch)
			return len(kinds) == 1 && kinds[0].Version == "v1"
		}, func() string { return "the record has not the version that is there" })
	}
}
