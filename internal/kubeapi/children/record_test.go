package children

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
)

func TestTheRecordIsAConfigMap(t *testing.T) {
	client := fake.NewSimpleDynamicClient(runtime.NewScheme()).Resource(configMaps).Namespace("ns")
	record := ConfigMap{Client: client, Name: "op-children"}
	pods := []Kind{{Version: "v1", Resource: "pods", Namespaced: true}}
	mustSave := func(watch string, kinds []Kind) {
		t.Helper()
		if err := record.Save(t.Context(), watch, kinds); err != nil {
			t.Fatal(err)
		}
	}
	wantLoaded := func(want map[string][]Kind) {
		t.Helper()
		got, err := record.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	wantLoaded(map[string][]Kind{})
	mustSave("Widget.g.io", nil)
	wantLoaded(map[string][]Kind{})
	mustSave("Widget.g.io", pods)
	mustSave("Gadget.g.io", []Kind{{Group: "g.io", Version: "v2", Resource: "things"}})
	wantLoaded(map[string][]Kind{"Widget.g.io": pods, "Gadget.g.io": {{Group: "g.io", Version: "v2", Resource: "things"}}})
	mustSave("Gadget.g.io", nil)
	wantLoaded(map[string][]Kind{"Widget.g.io": pods})

	object, err := client.Get(t.Context(), "op-children", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(object.Object, "what somebody wrote", "data", "Other.g.io"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	wantLoaded(map[string][]Kind{"Widget.g.io": pods})
}

func TestADeletedRecordIsSavedAgain(t *testing.T) {
	record := &memoryRecord{}
	s := newStage(t, Options{Record: record})
	s.timing.recordCheck = 20 * time.Millisecond
	s.start()
	recorded := func() bool { return len(record.of(widgets)) == 1 }
	s.runWrites(configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")))
	s.eventually(recorded, func() string { return "not recorded" })
	record.set(nil, nil)
	s.eventually(recorded, func() string { return "not recorded again" })
	record.mu.Lock()
	defer record.mu.Unlock()
	if record.saves != 2 {
		t.Errorf("%d times written", record.saves)
	}
}

func TestTheRecordIsWrittenOnceThatIsAllowed(t *testing.T) {
	for why, refusal := range map[string]error{
		"forbidden":               apierrors.NewForbidden(configMaps.GroupResource(), "", nil),
		"an absent namespace":     apierrors.NewNotFound(configMaps.GroupResource(), ""),
		"too large for a while":   apierrors.NewRequestEntityTooLargeError("too large"),
		"an API server that ails": errors.New("no answer"),
	} {
		t.Run(why, func(t *testing.T) {
			record := &memoryRecord{refusal: refusal}
			s := newStage(t, Options{Record: record})
			s.timing.saveRetry = 20 * time.Millisecond
			s.start()
			s.runWrites(configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")))
			s.logged("could not note which children to watch")
			record.mu.Lock()
			record.refusal = nil
			record.mu.Unlock()
			s.eventually(func() bool { return len(record.of(widgets)) == 1 }, func() string { return "not recorded" })
		})
	}
}

func TestARecordThatMayBeReadLate(t *testing.T) {
	record := &memoryRecord{err: apierrors.NewForbidden(configMaps.GroupResource(), "", nil), all: map[string][]Kind{
		"Widget.g.io": {{Version: "v1", Kind: "Secret", Resource: "secrets", Namespaced: true}},
	}}
	s := newStage(t, Options{Record: record})
	s.timing.saveRetry = 20 * time.Millisecond
	s.start().listen() // Controllers don't wait for it.
	s.logged("no children are watched until a run writes to one")
	s.runWrites(configMaps, object("ConfigMap", "c", ownedBy(widgets, "w")))
	record.set(record.all, nil)
	s.live(secrets)
	s.eventually(func() bool { return len(record.of(widgets)) == 2 }, func() string { return "not recorded" })
}
