package slots_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// kind returns the watched kind whose runs are a group.
func kind(group string) schema.GroupVersionKind { return schema.GroupVersionKind{Kind: group} }

// testQueue lets runs wait for slots and records the order in which they are admitted.
type testQueue struct {
	t        *testing.T
	slots    *slots.Slots
	admitted chan string
	releases map[string]func()
	mu       sync.Mutex
}

func newTestQueue(t *testing.T, limit int, groups ...string) *testQueue {
	t.Helper()
	var kinds []schema.GroupVersionKind
	for _, group := range groups {
		kinds = append(kinds, kind(group))
	}
	return &testQueue{t: t, slots: slots.New(limit, kinds...), admitted: make(chan string, 100), releases: map[string]func(){}}
}

// acquire takes a slot for the run, which must be free.
func (h *testQueue) acquire(name, group string) {
	h.t.Helper()
	live := h.slots.Live(kind(group))
	h.request(name, group, slots.Normal)
	if h.slots.Live(kind(group)) != live+1 {
		h.t.Fatalf("%s waits, although there should be room", name)
	}
	h.nextAdmitted()
}

// request returns when the run waits or has been admitted.
func (h *testQueue) request(name, group string, priority slots.Priority) {
	h.t.Helper()
	before := h.slots.Live(kind(group)) + h.slots.Waiting(kind(group))
	go func() {
		release, _, err := h.slots.Acquire(context.Background(), kind(group), priority)
		if err != nil {
			h.t.Error(err)
			return
		}
		h.mu.Lock()
		h.releases[name] = release
		h.mu.Unlock()
		h.admitted <- name
	}()
	eventually(h.t, func() bool { return h.slots.Live(kind(group))+h.slots.Waiting(kind(group)) == before+1 })
}

func (h *testQueue) nextAdmitted() string {
	h.t.Helper()
	select {
	case name := <-h.admitted:
		return name
	case <-time.After(scratch.WaitTimeout):
		h.t.Fatal("nobody is admitted")
		return ""
	}
}

func (h *testQueue) release(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.releases[name]()
}

// drain ends the runs one by one, the live one first, and returns the order in which the
// others are admitted.
func (h *testQueue) drain(live string, waiting int) []string {
	h.t.Helper()
	var order []string
	for range waiting {
		h.release(live)
		live = h.nextAdmitted()
		order = append(order, live)
	}
	return order
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	scratch.Eventually(t, "what has to come about", holds)
}

func TestOrder(t *testing.T) {
	type run struct {
		name, group string
		priority    slots.Priority
	}
	for name, test := range map[string]struct {
		waiting []run
		want    []string
	}{
		"who came first goes first": {
			[]run{{"a1", "a", slots.Normal}, {"a2", "a", slots.Normal}, {"a3", "a", slots.Normal}},
			[]string{"a1", "a2", "a3"},
		},
		"a deletion goes before a new generation, and that before the rest": {
			[]run{{"usual", "a", slots.Normal}, {"changed", "a", slots.Changed}, {"urgent", "a", slots.Urgent}},
			[]string{"urgent", "changed", "usual"},
		},
		"a deletion goes first whatever group it is of": {
			[]run{{"a1", "a", slots.Changed}, {"b1", "b", slots.Normal}, {"b2", "b", slots.Urgent}},
			[]string{"b2", "a1", "b1"},
		},
		"groups take turns, however many one of them sends": {
			[]run{{"a1", "a", slots.Normal}, {"a2", "a", slots.Normal}, {"a3", "a", slots.Normal}, {"b1", "b", slots.Normal}, {"b2", "b", slots.Normal}},
			[]string{"b1", "a1", "b2", "a2", "a3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newTestQueue(t, 1, "a", "b")
			h.acquire("live", "a")
			for _, p := range test.waiting {
				h.request(p.name, p.group, p.priority)
			}
			if diff := cmp.Diff(test.want, h.drain("live", len(test.waiting))); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReservedSlots(t *testing.T) {
	for name, test := range map[string]struct {
		limit  int
		groups []string
		want   int // how many slots one busy group gets
	}{
		"a group that is alone gets all":                         {4, []string{"busy"}, 4},
		"another group's first slot is kept free":                {4, []string{"busy", "b"}, 3},
		"so is every other's":                                    {6, []string{"busy", "b", "c", "d"}, 3},
		"but never more than half, or many kinds would idle":     {4, []string{"busy", "b", "c", "d", "e", "f"}, 2},
		"of two slots one is kept":                               {2, []string{"busy", "b"}, 1},
		"with one slot nothing can be kept":                      {1, []string{"busy", "b"}, 1},
		"no slots at all would be a standstill, so there is one": {0, []string{"busy"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := newTestQueue(t, test.limit, test.groups...)
			for range 10 {
				h.request("x", "busy", slots.Urgent)
			}
			if got := h.slots.Live(kind("busy")); got != test.want {
				t.Errorf("want %d, got %d", test.want, got)
			}
		})
	}
}

func TestEndlessRunsOfOneGroupStarveNoOther(t *testing.T) {
	h := newTestQueue(t, 4, "hours", "b", "c")
	for range 10 {
		h.request("endless", "hours", slots.Urgent)
	}
	for range 20 {
		h.acquire("b", "b")
		h.acquire("c", "c")
		h.release("b")
		h.release("c")
	}
}

func TestAReservedSlotGoesToTheBusyGroupOnceAllOthersHaveOne(t *testing.T) {
	h := newTestQueue(t, 3, "a", "b")
	h.acquire("a1", "a")
	h.acquire("a2", "a")
	h.request("a3", "a", slots.Normal)
	h.acquire("b1", "b")
	if got := h.slots.Live(kind("a")); got != 2 {
		t.Fatalf("want 2 live of a, got %d", got)
	}
	h.release("a1")
	if got := h.nextAdmitted(); got != "a3" {
		t.Errorf("want a3, got %s", got)
	}
}

func TestACanceledWaitLeavesTheQueue(t *testing.T) {
	h := newTestQueue(t, 1)
	h.acquire("live", "a")
	gone := errors.New("the CR is gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	result := make(chan error)
	go func() {
		_, _, err := h.slots.Acquire(ctx, kind("a"), slots.Urgent)
		result <- err
	}()
	eventually(t, func() bool { return h.slots.Waiting(kind("a")) == 1 })
	h.request("next", "a", slots.Normal)
	cancel(gone)
	if err := <-result; !errors.Is(err, gone) {
		t.Errorf("want the cause, got %v", err)
	}
	if got := h.slots.Waiting(kind("a")); got != 1 {
		t.Errorf("want 1 waiting, got %d", got)
	}
	h.release("live")
	if got := h.nextAdmitted(); got != "next" {
		t.Errorf("want next, got %s", got)
	}
	if _, _, err := h.slots.Acquire(ctx, kind("a"), slots.Urgent); !errors.Is(err, gone) {
		t.Errorf("want the cause at once, got %v", err)
	}
}

func TestReleaseCountsOnce(t *testing.T) {
	h := newTestQueue(t, 1)
	h.acquire("a1", "a")
	h.release("a1")
	h.release("a1")
	h.acquire("a2", "a")
	h.request("a3", "a", slots.Normal)
	if got := h.slots.Live(kind("a")); got != 1 {
		t.Errorf("want 1 live, got %d", got)
	}
}

func TestARunIsToldWhetherItWaited(t *testing.T) {
	s := slots.New(1)
	release, waited, err := s.Acquire(t.Context(), kind("a"), slots.Normal)
	if err != nil || waited {
		t.Fatalf("a free slot: waited %v, %v", waited, err)
	}
	second := make(chan bool)
	go func() {
		_, waited, err := s.Acquire(t.Context(), kind("a"), slots.Normal)
		second <- waited && err == nil
	}()
	eventually(t, func() bool { return s.Waiting(kind("a")) == 1 })
	release()
	if !<-second {
		t.Error("a slot that was taken: did not wait")
	}
}

func TestObserveWaitIsCalled(t *testing.T) {
	s := slots.New(1)
	var waits []string
	s.ObserveWait = func(watch schema.GroupVersionKind, wait time.Duration) {
		if wait < 0 {
			t.Errorf("got a wait of %s", wait)
		}
		waits = append(waits, watch.Kind)
	}
	for _, group := range []string{"a", "b"} {
		release, _, err := s.Acquire(context.Background(), kind(group), slots.Normal)
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
	if !slices.Equal(waits, []string{"a", "b"}) {
		t.Errorf("got %v", waits)
	}
}

// TestNeverMoreThanTheLimit starts many runs that are canceled at different moments.
func TestNeverMoreThanTheLimit(t *testing.T) {
	const limit, runs = 3, 300
	s := slots.New(limit, kind("a"), kind("b"), kind("c"))
	var live, most int
	var mu sync.Mutex
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		live += n
		most = max(most, live)
	}
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+i%7)*time.Millisecond)
			defer cancel()
			release, _, err := s.Acquire(ctx, kind(string(rune('a'+i%3))), slots.Priority(i%3))
			if err != nil {
				return
			}
			count(1)
			<-time.After(time.Duration(i%3) * 100 * time.Microsecond)
			count(-1)
			release()
		})
	}
	all.Wait()
	if most > limit || most == 0 {
		t.Errorf("want 1 to %d at once, got %d", limit, most)
	}
	for _, group := range []string{"a", "b", "c"} {
		if s.Live(kind(group)) != 0 || s.Waiting(kind(group)) != 0 {
			t.Errorf("group %s: %d live and %d waiting are left", group, s.Live(kind(group)), s.Waiting(kind(group)))
		}
	}
}

// A run that is live already cannot wait: what it does at the API waits for its manager.
func TestALiveRunTakesASlotAtOnce(t *testing.T) {
	s := slots.New(1)
	release, _, err := s.Acquire(t.Context(), kind("a"), slots.Normal)
	if err != nil {
		t.Fatal(err)
	}
	live, waited, err := s.Acquire(t.Context(), kind("b"), slots.Live)
	if err != nil || waited {
		t.Fatalf("it has waited: %v, %v", waited, err)
	}
	release()
	waits := make(chan func())
	go func() {
		release, _, _ := s.Acquire(t.Context(), kind("a"), slots.Urgent)
		waits <- release
	}()
	select {
	case <-waits:
		t.Fatal("there are more runs than slots")
	case <-time.After(20 * time.Millisecond):
	}
	live()
	(<-waits)()
}
