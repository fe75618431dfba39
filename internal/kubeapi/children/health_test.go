package children

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/reduce"
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

func healthStage(t *testing.T) *stage {
	t.Helper()
	reducer, err := reduce.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	reducer.JudgeHealth()
	ignored := &HealthRule{Ignores: func(kind, name string) bool { return kind == "Account" && name == "ignored" }}
	return newStage(t, Options{Reducer: reducer, Watches: []Watch{{GVK: widgets, Dependents: true, Health: ignored}, {GVK: gadgets, Dependents: true}}}).start().listen()
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
	if next := s.health([]string{wordOfC}, nil); next.Before(began.Add(healthPause)) {
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

// A change of health alone leads to a notification without a text, which runs nothing. A watch without
// health gets none.
func TestHealthNotifiesWithoutARun(t *testing.T) {
	s := healthStage(t)
	c := s.runWrites(accounts, object("Account", "c", ownedBy(widgets, "w"), well))
	s.runWrites(accounts, object("Account", "g", ownedBy(gadgets, "g"), well))
	s.live(accounts)
	s.health(nil, nil)
	s.store(accounts, edited(c, unwell))
	s.notified("Widget ns/w uid-w")
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff([]string{""}, s.whats); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// After a write of a run, its watch event decides, and not what was seen before it.
func TestHealthWaitsForTheRunsWrites(t *testing.T) {
	s := healthStage(t)
	c := s.runWrites(accounts, object("Account", "c", ownedBy(widgets, "w"), well))
	s.live(accounts)
	s.health(nil, nil)
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
