package children

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/ledger"
)

// written is the record's text for one child of a CR.
func written(child types.UID, namespace, name string, kind schema.GroupVersionKind) string {
	key := ownershipOf(child, ledger.CR{Kind: kind.GroupKind(), NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	return base64.RawStdEncoding.EncodeToString(key[:])
}

// TestATenantsObjectBringsNoCRBack lets objects name a CR of another namespace as their owner, in
// every way. None of them has been written by a run of that CR.
func TestATenantsObjectBringsNoCRBack(t *testing.T) {
	both := []Watch{{GVK: widgets, Dependents: true, ClusterScoped: true}, {GVK: gadgets, Dependents: true, ClusterScoped: true}}
	s := newStage(t, Options{Watches: both}).start()
	s.Subscribe(t.Context(), Scope{widgets, true}, func(cr types.NamespacedName, _ types.UID, what string, _ int) { s.note("Widget "+cr.String(), what) })
	s.Subscribe(t.Context(), Scope{gadgets, false}, func(cr types.NamespacedName, _ types.UID, what string, _ int) { s.note("Gadget "+cr.String(), what) })
	s.runWrites(configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")))
	s.runWrites(roles, object("ClusterRole", "c", annotatedFor(widgets, "ns/w")))
	run := &access.Session{Owner: access.Owner{GVK: gadgets, Name: "g", UID: "uid-g"}}
	child := s.store(configMaps, object("ConfigMap", "of-g", inNamespace("other"), ownedBy(gadgets, "g")))
	s.BeforeWrite(run, writeTo("create", configMaps, child))(access.Response{Code: 201, Objects: []*unstructured.Unstructured{child}})
	s.live(configMaps)
	s.live(roles)
	for _, forged := range []*unstructured.Unstructured{
		object("ConfigMap", "a", inNamespace("far"), annotatedFor(widgets, "ns/w")),
		object("ConfigMap", "b", inNamespace("far"), annotatedFor(gadgets, "g")),
		object("ConfigMap", "c", inNamespace("far"), annotatedFor(gadgets, "/g")),
		object("ConfigMap", "d", inNamespace("far"), ownedBy(gadgets, "g")),
	} {
		made := s.store(configMaps, forged)
		s.remove(configMaps, s.store(configMaps, edited(made, saying("two"))))
	}
	s.remove(roles, s.store(roles, object("ClusterRole", "a", annotatedFor(widgets, "ns/w"))))
	// What a run has written, and what is in the CR's own namespace, still does.
	s.store(configMaps, object("ConfigMap", "near", annotatedFor(widgets, "ns/w")))
	s.store(configMaps, edited(child, saying("two")))
	s.notified("Widget ns/w", "Gadget /g")
}

func TestOwnershipRecordsOutliveTheManager(t *testing.T) {
	record := &memoryRecord{}
	s := newStage(t, Options{Record: record})
	s.timing.ownership = 10 * time.Millisecond
	s.start().listen()
	far := s.runWrites(configMaps, object("ConfigMap", "far", inNamespace("far"), annotatedFor(widgets, "ns/w")))
	gone := s.runWrites(configMaps, object("ConfigMap", "gone", inNamespace("far"), annotatedFor(widgets, "ns/w")))
	s.runWrites(configMaps, object("ConfigMap", "near", annotatedFor(widgets, "ns/w")))
	recorded := func() string {
		for _, kind := range record.of(widgets) {
			return kind.Written
		}
		return ""
	}
	s.live(configMaps)
	s.remove(configMaps, gone)
	s.notified("Widget ns/w")
	want := written(far.GetUID(), "ns", "w", widgets)
	s.eventually(func() bool { return recorded() == want }, func() string { return fmt.Sprintf("recorded %q, want %q", recorded(), want) })

	forged := object("ConfigMap", "forged", inNamespace("far"), annotatedFor(widgets, "ns/w"), func(o *unstructured.Unstructured) { o.SetUID("f"); o.SetResourceVersion("1") })
	next := newStage(t, Options{Record: record}, far.DeepCopy(), forged).start().listen()
	next.live(configMaps)
	next.store(configMaps, edited(forged, saying("two")))
	next.store(configMaps, edited(far, saying("two")))
	next.notified("Widget ns/w")
	if what := strings.Join(next.whats, ", "); what != "ConfigMap far/far changed" {
		t.Errorf("notified of %s", what)
	}
}

func TestOwnershipRecordsOfWhatIsGoneAreForgotten(t *testing.T) {
	s := newStage(t, Options{Record: &memoryRecord{all: map[string][]Kind{"Widget.g.io": {{
		Version: "v1", Resource: "configmaps", Namespaced: true, Written: written("gone", "ns", "w", widgets),
	}}}}}).start().listen()
	s.live(configMaps)
	kept := s.runWrites(configMaps, object("ConfigMap", "far", inNamespace("far"), annotatedFor(widgets, "ns/w")))
	known := func() map[ownershipRecord]*ownedChild {
		s.Children.mu.Lock()
		defer s.Children.mu.Unlock()
		s.sweepOwnership()
		return s.ownership.children
	}
	s.eventually(func() bool {
		all := known()
		return len(all) == 1 && all[ownershipOf(kept.GetUID(), ledger.CR{Kind: widgets.GroupKind(), NamespacedName: types.NamespacedName{Namespace: "ns", Name: "w"}})] != nil
	}, func() string { return fmt.Sprint(known()) })
}

func TestNoOwnershipIsReadFromAnEditedRecord(t *testing.T) {
	var p ownershipRecords
	for _, text := range []string{"", "!", "AAAA", "AAAAAAAAAAAA"} {
		p.read(text, widgets.GroupKind(), configMaps.GroupResource())
	}
	if len(p.children) != 1 {
		t.Errorf("want the whole record alone, got %v", p.children)
	}
}
