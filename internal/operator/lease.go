package operator

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
	ctrlelection "sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/fence"
)

// releaseTimeout bounds the release of the lease, which runs out by itself too.
const releaseTimeout = 3 * time.Second

// lease is this manager's part in leader election. Without leader election its
// fence is nil, and always open.
type lease struct {
	name  string
	fence *fence.Fence
	lock  *fencedLock
	retry time.Duration
}

// holders are told what their runs may count on.
type holders struct {
	// stop ends all runs; no more begin.
	stop func()
	// end ends all processes of runs: TERM at once, KILL after grace.
	end func(grace time.Duration)
}

// newLease prepares leader election, if it is wanted. Options.Check has
// seen its settings.
func newLease(client *rest.Config, o config.Options, h holders) (lease, error) {
	name, err := o.LeaseName()
	l := lease{name: name, retry: o.RetryPeriod()}
	if err != nil || !o.LeaderElect {
		return l, err
	}
	l.lock = &fencedLock{}
	// It gives the configuration that it gets a timeout and another user agent.
	l.lock.Interface, err = ctrlelection.NewResourceLock(rest.CopyConfig(client), lateProvider{lock: l.lock}, ctrlelection.Options{
		LeaderElection:          true,
		LeaderElectionID:        name,
		LeaderElectionNamespace: o.LeaderElectionNamespace,
		RenewDeadline:           o.LeaderElectRenewDeadline,
	})
	if err != nil {
		return lease{}, fmt.Errorf("prepare leader election: %w", err)
	}
	l.fence = fence.New(h.fenceOptions(o, l.retry))
	l.lock.fence = l.fence
	return l, nil
}

// fenceOptions makes the time between the closing of the fence and the moment when
// another replica may lead the time in which runs end: one half of it lies between
// TERM and KILL, the other one is for what is slow. The usual time between the two
// would be too long, also for runs that an orderly stop is ending already.
func (h holders) fenceOptions(o config.Options, retry time.Duration) fence.Options {
	options := fence.Options{
		// The lease object counts in whole seconds, and so do other candidates.
		LeaseDuration: o.LeaderElectLeaseDuration.Truncate(time.Second),
		RetryPeriod:   retry,
	}
	grace := options.Margin() / 2
	options.OnLost = func(late time.Duration) {
		h.stop()
		go h.end(grace - late)
	}
	return options
}

// behind returns a configuration whose connections carry nothing once the lease is
// lost. The lock has its own, or nobody could renew.
func (l lease) behind(client *rest.Config) *rest.Config {
	if l.fence == nil {
		return client
	}
	client = rest.CopyConfig(client)
	client.Dial = l.fence.Dial
	return client
}

// release gives the lease back, so that the next leader begins at its next look
// instead of waiting until the lease has run out. The caller has seen every run
// end: from here on nothing of this process writes to the API but the release. A
// lease that is not surely held is left alone.
func (l lease) release() error {
	if !l.fence.Close() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	// A renewal that was on its way when the election ended may still arrive.
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		record, _, err := l.lock.Get(ctx)
		if err != nil || record.HolderIdentity != l.lock.Identity() {
			return err
		}
		now := metav1.Now()
		return l.lock.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, AcquireTime: now, RenewTime: now,
		})
	})
	if err != nil {
		return fmt.Errorf("release the lease: %w", err)
	}
	return nil
}

// fencedLock tells the fence what happens to the lease. A renewal counts from
// before its request, and not when its answer is lost: the next one will tell.
type fencedLock struct {
	resourcelock.Interface
	fence    *fence.Fence
	recorder recorder.Provider // of the manager, which is made with the lock
}

func (l *fencedLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.renew(r, func() error { return l.Interface.Create(ctx, r) })
}

func (l *fencedLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.renew(r, func() error { return l.Interface.Update(ctx, r) })
}

func (l *fencedLock) renew(r resourcelock.LeaderElectionRecord, send func() error) error {
	asked := fence.Now()
	err := send()
	if err == nil && r.HolderIdentity == l.Identity() {
		l.fence.RecordRenewal(asked)
	}
	return err
}

// Get reads the lease, as a leader does whose renewal failed. client-go goes on
// trying when it sees another leader there, up to the deadline for renewals.
func (l *fencedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := l.Interface.Get(ctx)
	if err == nil && r.HolderIdentity != l.Identity() {
		l.fence.RecordLoss()
	}
	return r, raw, err
}

// lateProvider gives recorders that write through the manager's, which does not
// exist yet when the lock is made.
type lateProvider struct {
	recorder.Provider

	lock *fencedLock
}

// GetEventRecorderFor implements recorder.Provider.
func (p lateProvider) GetEventRecorderFor(name string) record.EventRecorder {
	return lateRecorder{name: name, lock: p.lock}
}

type lateRecorder struct {
	record.EventRecorder // A lock calls Eventf alone.

	name string
	lock *fencedLock
}

// Eventf implements resourcelock.EventRecorder.
func (r lateRecorder) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	//nolint:staticcheck // It is what controller-runtime takes for the lock.
	r.lock.recorder.GetEventRecorderFor(r.name).Eventf(object, kind, reason, format, args...)
}
