package leadership

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/fence"
)

// managerAnnotation names, at the lock of a run, the lease of the manager that has it.
const managerAnnotation = "ensign.io/manager-lease"

// lockTimeout bounds a try to remove a lock.
const lockTimeout = 5 * time.Second

// runLocks keeps two shards from running content for a CR that moves from one to the other. A Lease
// by the UID of the CR, in the manager's namespace, where tenants cannot write, exists during a
// run. It is never renewed: the manager's own lease shows that the manager still runs, and its
// loss ends all of the manager's runs.
type runLocks struct {
	leases coordination.LeaseInterface
	// prefix begins the names of locks; the shards of an operator have the same.
	prefix string
	// lease and identity are those of this manager in leader election. base is the lease of a manager
	// of the same operator that has all CRs: while one holds it, no shard runs anything.
	base, lease, identity string
	fence                 *fence.Fence
	clock                 clock.PassiveClock

	mu sync.Mutex
	// seen has the last observed lease of each manager, by the lease's name, and the time since
	// which it has been the same.
	seen map[string]observedLease
}

type observedLease struct {
	spec  coordinationv1.LeaseSpec
	since time.Time
}

// Lock implements controller.RunLocks.
func (l *runLocks) Lock(ctx context.Context, uid types.UID) (unlock func(), err error) {
	lock := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: l.prefix + string(uid), Annotations: map[string]string{managerAnnotation: l.lease}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &l.identity},
	}
	made, err := l.leases.Create(ctx, lock, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		if err = l.breakDead(ctx, lock.Name); err == nil {
			made, err = l.leases.Create(ctx, lock, metav1.CreateOptions{})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lock the run: %w", err)
	}
	// After that: a manager of all CRs that does not see the lock has its lease before this look.
	if err := l.unlessLed(ctx, l.base, ""); err != nil {
		l.release(made)
		return nil, fmt.Errorf("lock the run: %w", err)
	}
	return func() { l.release(made) }, nil
}

// shardsRuns are the locks of a manager of all CRs. It makes none, because no shard begins a run
// beside it: it only waits for runs that existed when it began to lead.
type shardsRuns struct {
	locks *runLocks

	mu sync.Mutex
	// live has the names of the locks of runs that may be live; nil before the first run of this manager.
	live map[string]bool
}

// Lock implements controller.RunLocks.
func (s *shardsRuns) Lock(ctx context.Context, uid types.UID) (unlock func(), err error) {
	name := s.locks.prefix + string(uid)
	live, err := s.mayBeLive(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("look for the runs of shards: %w", err)
	}
	if live {
		if _, err := s.locks.dead(ctx, name); err != nil {
			return nil, fmt.Errorf("wait for the run of a shard: %w", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.live, name)
	}
	return func() {}, nil
}

// mayBeLive reports whether a lock was there when this manager first looked.
func (s *shardsRuns) mayBeLive(ctx context.Context, name string) (live bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		s.live, err = s.locks.list(ctx)
	}
	return s.live[name], err
}

// list returns the names of the locks that there are.
func (l *runLocks) list(ctx context.Context) (map[string]bool, error) {
	leases, err := l.leases.List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("%w. Give the operator's account the verb list for leases in its own namespace", err)
	}
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for i := range leases.Items {
		if name := leases.Items[i].Name; strings.HasPrefix(name, l.prefix) {
			names[name] = true
		}
	}
	return names, nil
}

// breakDead removes a lock of this manager, which an earlier attempt has left, and one of a manager
// that does not lead any more. The error is controller.ErrLocked where neither is so.
func (l *runLocks) breakDead(ctx context.Context, name string) error {
	lock, err := l.dead(ctx, name)
	if err != nil || lock == nil {
		return err
	}
	return l.remove(ctx, lock)
}

// dead returns a lock that may be broken; nil if there is no lock. The error is controller.ErrLocked if
// its run may be live.
func (l *runLocks) dead(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	lock, err := l.leases.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // There is no lock.
	}
	if err != nil {
		return nil, err
	}
	if holder := ptr.Deref(lock.Spec.HolderIdentity, ""); holder != l.identity {
		err = l.unlessLed(ctx, lock.Annotations[managerAnnotation], holder)
	}
	return lock, err
}

// unlessLed returns controller.ErrLocked while a manager may hold the lease: that with the identity,
// or, for "", any. As client-go's leader election does, it trusts no clock but its own: a lease has
// expired when it has not changed for its duration.
func (l *runLocks) unlessLed(ctx context.Context, name, identity string) error {
	lease, err := l.leases.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if holder == "" || identity != "" && holder != identity {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, known := l.seen[name]; !known || !last.spec.RenewTime.Equal(lease.Spec.RenewTime) {
		l.seen[name] = observedLease{lease.Spec, l.clock.Now()}
	} else if l.clock.Since(last.since) >= time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second {
		return nil
	}
	return fmt.Errorf("%w: %s (lease %s)", controller.ErrLocked, holder, name)
}

// release removes the lock of a run that has ended. While the API server is away it goes on trying
// behind the caller's back, because nobody else does it while this manager leads.
func (l *runLocks) release(lock *coordinationv1.Lease) {
	over := func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, lockTimeout)
		defer cancel()
		return l.remove(ctx, lock) == nil || !l.fence.Held(), nil
	}
	if done, _ := over(context.Background()); !done {
		go func() { _ = wait.PollUntilContextCancel(context.Background(), time.Second, false, over) }()
	}
}

// remove removes this very lock. It is not an error if it is gone, or another manager's by now.
func (l *runLocks) remove(ctx context.Context, lock *coordinationv1.Lease) error {
	err := l.leases.Delete(ctx, lock.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &lock.UID}})
	if apierrors.IsConflict(err) { // It has another holder by now, or was changed.
		there, lookErr := l.leases.Get(ctx, lock.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(lookErr) || lookErr == nil && there.UID != lock.UID {
			return nil
		}
	}
	return client.IgnoreNotFound(err)
}
