package operator

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
	ctrlelection "sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/ensign-operator/ensign/internal/fence"
)

const (
	// usualRetry is the pause between two renewals that controller-runtime takes.
	usualRetry = 2 * time.Second
	// shortestLease leaves time for renewals and for the end of runs.
	shortestLease = 3 * time.Second
	// releaseTimeout bounds the release of the lease, which runs out by itself too.
	releaseTimeout = 3 * time.Second
)

// lease is this manager's part in leader election. Without leader election its
// fence is nil, and always open.
type lease struct {
	id    string
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
func newLease(config *rest.Config, o Options, env environment, h holders) (lease, error) {
	id, err := leaderElectionID(o, env)
	if err != nil || !o.LeaderElect {
		return lease{id: id, retry: usualRetry}, err
	}
	l := lease{id: id, retry: retryPeriod(o.LeaderElectLeaseDuration)}
	l.lock = &fencedLock{}
	// It gives the configuration that it gets a timeout and another user agent.
	l.lock.Interface, err = ctrlelection.NewResourceLock(rest.CopyConfig(config), lateProvider{lock: l.lock}, ctrlelection.Options{
		LeaderElection:          true,
		LeaderElectionID:        id,
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
func (h holders) fenceOptions(o Options, retry time.Duration) fence.Options {
	options := fence.Options{
		// The lease object counts in whole seconds, and so do other candidates.
		Lease: o.LeaderElectLeaseDuration.Truncate(time.Second),
		Retry: retry,
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
func (l lease) behind(config *rest.Config) *rest.Config {
	if l.fence == nil {
		return config
	}
	config = rest.CopyConfig(config)
	config.Dial = l.fence.Dial
	return config
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

// retryPeriod gives a short lease shorter pauses between its renewals, in the
// proportion of the usual times.
func retryPeriod(lease time.Duration) time.Duration {
	return min(usualRetry, lease*2/15)
}

// checkTimes says before the start what client-go would say after it, and by the
// names of the flags.
func checkTimes(o Options, retry time.Duration) error {
	shortest := time.Duration(leaderelection.JitterFactor * float64(retry))
	switch duration, deadline := o.LeaderElectLeaseDuration, o.LeaderElectRenewDeadline; {
	case duration < shortestLease:
		return fmt.Errorf("--leader-elect-lease-duration=%s is too short to renew in: take %s or more", duration, shortestLease)
	case deadline >= duration:
		return fmt.Errorf("--leader-elect-renew-deadline=%s must be less than --leader-elect-lease-duration=%s", deadline, duration)
	case deadline <= shortest:
		return fmt.Errorf("--leader-elect-renew-deadline=%s is too short: take more than %s", deadline, shortest)
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
		l.fence.Renewed(asked)
	}
	return err
}

// Get reads the lease, as a leader does whose renewal failed. client-go goes on
// trying when it sees another leader there, up to the deadline for renewals.
func (l *fencedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := l.Interface.Get(ctx)
	if err == nil && r.HolderIdentity != l.Identity() {
		l.fence.Lose()
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
