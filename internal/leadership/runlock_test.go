package leadership

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	"github.com/ensign-operator/ensign/internal/controller"
)

// lockers are two managers of one operator, a and b, whose leases are there.
func lockers(t *testing.T) (client *fake.Clientset, a, b *runLocks, clock *testclock.FakePassiveClock) {
	t.Helper()
	client, clock = fake.NewClientset(), testclock.NewFakePassiveClock(time.Unix(1_000_000, 0))
	keepUIDs(client)
	leases := client.CoordinationV1().Leases("ns")
	newLocks := func(name string) *runLocks {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("pod-" + name), LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(time.Unix(1, 0))),
		}}
		if _, err := leases.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return &runLocks{leases: leases, prefix: "op-run-", base: "op", lease: name, identity: "pod-" + name, clock: clock, seen: map[string]observedLease{}}
	}
	return client, newLocks("a"), newLocks("b"), clock
}

func oneLocker(t *testing.T) *runLocks {
	t.Helper()
	_, a, _, _ := lockers(t) //nolint:dogsled // That is why this function is there.
	return a
}

// keepUIDs lets the client give UIDs, and heed them at deletions, as an API server does.
func keepUIDs(client *fake.Clientset) {
	made := 0
	client.PrependReactor("create", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		made++
		a.(clienttesting.CreateAction).GetObject().(*coordinationv1.Lease).UID = types.UID(fmt.Sprint(made))
		return false, nil, nil
	})
	client.PrependReactor("delete", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		deletion := a.(clienttesting.DeleteActionImpl)
		live, err := client.Tracker().Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), "ns", deletion.Name)
		if wanted := deletion.DeleteOptions.Preconditions; err == nil && wanted != nil && *wanted.UID != live.(*coordinationv1.Lease).UID {
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, deletion.Name, errors.New("another UID"))
		}
		return false, nil, nil
	})
}

func wantLocked(t *testing.T, l *runLocks, locked bool) (unlock func()) {
	t.Helper()
	unlock, err := l.Lock(t.Context(), "uid-1")
	if errors.Is(err, controller.ErrLocked) != locked || !locked && err != nil {
		t.Fatalf("want it locked: %t, got %v", locked, err)
	}
	return unlock
}

func TestALockIsOneManagersUntilItGivesItBack(t *testing.T) {
	_, a, b, clock := lockers(t)
	unlock := wantLocked(t, a, false)
	wantLocked(t, b, true)
	clock.SetTime(clock.Now().Add(14 * time.Second))
	wantLocked(t, b, true)
	unlock()
	unlock = wantLocked(t, b, false)
	wantLocked(t, a, true)
	unlock()
}

func TestALockOfAManagerThatDoesNotLeadIsBroken(t *testing.T) {
	for why, happens := range map[string]func(t *testing.T, l *runLocks, clock *testclock.FakePassiveClock){
		"its lease expires": func(_ *testing.T, _ *runLocks, clock *testclock.FakePassiveClock) {
			clock.SetTime(clock.Now().Add(15 * time.Second))
		},
		"another has its lease":  changeLease(func(s *coordinationv1.LeaseSpec) { s.HolderIdentity = new("pod-of-its-successor") }),
		"it gave its lease back": changeLease(func(s *coordinationv1.LeaseSpec) { s.HolderIdentity = new("") }),
		"its lease is gone altogether": func(t *testing.T, l *runLocks, _ *testclock.FakePassiveClock) {
			if err := l.leases.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(why, func(t *testing.T) {
			_, a, b, clock := lockers(t)
			stale := wantLocked(t, a, false)
			wantLocked(t, b, true)
			happens(t, b, clock)
			wantLocked(t, b, false)
			stale() // What the former manager gives back by now is not its own any more.
			wantLocked(t, a, true)
		})
	}
}

func changeLease(change func(*coordinationv1.LeaseSpec)) func(t *testing.T, l *runLocks, clock *testclock.FakePassiveClock) {
	return func(t *testing.T, l *runLocks, _ *testclock.FakePassiveClock) {
		t.Helper()
		lease, err := l.leases.Get(t.Context(), "a", metav1.GetOptions{})
		if err == nil {
			change(&lease.Spec)
			_, err = l.leases.Update(t.Context(), lease, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestNoShardRunsAnythingBesideAManagerOfAllResources(t *testing.T) {
	_, a, _, clock := lockers(t)
	whole := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "op"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: new("pod-of-old"), LeaseDurationSeconds: new(int32(15))}}
	if _, err := a.leases.Create(t.Context(), whole, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	wantLocked(t, a, true)
	clock.SetTime(clock.Now().Add(14 * time.Second))
	wantLocked(t, a, true)
	clock.SetTime(clock.Now().Add(time.Second))
	wantLocked(t, a, false)
}

// A shard that has not seen the new leader makes its lock first, which that one sees.
func TestAManagerOfAllResourcesWaitsForTheRunsOfShards(t *testing.T) {
	_, a, b, clock := lockers(t)
	whole := &shardsRuns{locks: &runLocks{leases: a.leases, prefix: a.prefix, base: "op", lease: "op", identity: "pod-of-all", clock: clock, seen: map[string]observedLease{}}}
	waits := func(uid types.UID, want bool) {
		t.Helper()
		if _, err := whole.Lock(t.Context(), uid); errors.Is(err, controller.ErrLocked) != want || !want && err != nil {
			t.Errorf("%s: want it locked: %t, got %v", uid, want, err)
		}
	}
	unlock := wantLocked(t, a, false)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "op"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: new("pod-of-all"), LeaseDurationSeconds: new(int32(15))}}
	if _, err := a.leases.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waits("uid-1", true)
	waits("uid-2", false)
	unlock()
	waits("uid-1", false)
	wantLocked(t, b, true)
	if _, err := a.leases.Get(t.Context(), "op-run-uid-1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the lock of a shard that may not run anything is left: %v", err)
	}
}

func TestALeaseThatIsRenewedKeepsItsLocks(t *testing.T) {
	_, a, b, clock := lockers(t)
	wantLocked(t, a, false)
	for i := range 5 {
		wantLocked(t, b, true)
		clock.SetTime(clock.Now().Add(10 * time.Second))
		changeLease(func(s *coordinationv1.LeaseSpec) { s.RenewTime = new(metav1.NewMicroTime(time.Unix(int64(2+i), 0))) })(t, b, clock)
	}
}

func TestAnOwnLockOfAnEarlierAttemptIsNoHindrance(t *testing.T) {
	a := oneLocker(t)
	wantLocked(t, a, false)
	wantLocked(t, a, false)
}

func TestALockIsGivenBackWhenTheAPIServerIsBack(t *testing.T) {
	client, a, b, _ := lockers(t)
	unlock := wantLocked(t, a, false)
	away := make(chan struct{})
	client.PrependReactor("delete", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		select {
		case <-away:
			return false, nil, nil
		default:
			return true, nil, apierrors.NewServiceUnavailable("away")
		}
	})
	unlock()
	wantLocked(t, b, true)
	close(away)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		if _, err := b.leases.Get(ctx, "op-run-uid-1", metav1.GetOptions{}); apierrors.IsNotFound(err) {
			break
		} else if ctx.Err() != nil {
			t.Fatal("the lock is never given back")
		}
		time.Sleep(10 * time.Millisecond)
	}
	wantLocked(t, b, false)
}
