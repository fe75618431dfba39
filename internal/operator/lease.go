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

// releaseTimeout bounds the release of the lease. A lease that is not released expires.
const releaseTimeout = 3 * time.Second

// lease is the manager's part in leader election. Without leader election, lock and fence
// are nil; a nil fence is always open.
type lease struct {
	name        string
	fence       *fence.Fence
	lock        *fencedLock
	retryPeriod time.Duration
}

// lossHandlers are called when the lease is lost.
type lossHandlers struct {
	// stopRuns ends all runs and lets no other begin.
	stopRuns func()
	// endProcesses sends all processes of runs TERM at once, and KILL after grace.
	endProcesses func(grace time.Duration)
}

// newLease prepares leader election if --leader-elect is set. config.Options.Check has
// checked the settings.
func newLease(client *rest.Config, o config.Options, h lossHandlers) (lease, error) {
	name, err := o.LeaseName()
	l := lease{name: name, retryPeriod: o.RetryPeriod()}
	if err != nil || !o.LeaderElect {
		return l, err
	}
	l.lock = &fencedLock{}
	// A copy, because NewResourceLock sets a timeout and a user agent in its configuration.
	l.lock.Interface, err = ctrlelection.NewResourceLock(rest.CopyConfig(client), deferredProvider{lock: l.lock}, ctrlelection.Options{
		LeaderElection:          true,
		LeaderElectionID:        name,
		LeaderElectionNamespace: o.LeaderElectionNamespace,
		RenewDeadline:           o.LeaderElectRenewDeadline,
	})
	if err != nil {
		return lease{}, fmt.Errorf("prepare leader election: %w", err)
	}
	l.fence = fence.New(h.fenceOptions(o, l.retryPeriod))
	l.lock.fence = l.fence
	return l, nil
}

// fenceOptions returns options with which the runs end between the closing of the fence and
// the moment at which another replica may lead. Half of this time passes between TERM and
// KILL; the other half is for delays. The grace time of an orderly stop would be too long,
// also for runs that such a stop is ending already.
func (h lossHandlers) fenceOptions(o config.Options, retry time.Duration) fence.Options {
	options := fence.Options{
		// The lease object holds whole seconds, which is what other candidates read.
		LeaseDuration: o.LeaderElectLeaseDuration.Truncate(time.Second),
		RetryPeriod:   retry,
	}
	grace := options.Margin() / 2
	options.OnLost = func(late time.Duration) {
		h.stopRuns()
		go h.endProcesses(grace - late)
	}
	return options
}

// fencedConfig returns a configuration whose connections end when the lease is lost. The
// lock of leader election does not use it, because it releases the lease after the fence
// has closed.
func (l lease) fencedConfig(client *rest.Config) *rest.Config {
	if l.fence == nil {
		return client
	}
	client = rest.CopyConfig(client)
	client.Dial = l.fence.Dial
	return client
}

// release releases the lease, so that the next leader need not wait until it expires. Every
// run must have ended: the release is this process's last request to the API. A lease that
// is not surely held is not released.
func (l lease) release() error {
	if !l.fence.Close() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	// A renewal that was sent before the election ended may still arrive: that is a conflict.
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

// fencedLock is a lock of leader election that reports renewals and losses to the fence. A
// renewal whose response is lost does not count; the next one will.
type fencedLock struct {
	resourcelock.Interface
	fence    *fence.Fence
	recorder recorder.Provider // the manager's; set after the manager is made with this lock
}

func (l *fencedLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.observeRenewal(r, func() error { return l.Interface.Create(ctx, r) })
}

func (l *fencedLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.observeRenewal(r, func() error { return l.Interface.Update(ctx, r) })
}

// observeRenewal sends a write of the lease and reports it to the fence if it was a renewal.
// The renewal counts from before the request.
func (l *fencedLock) observeRenewal(r resourcelock.LeaderElectionRecord, send func() error) error {
	sentAt := fence.Now()
	err := send()
	if err == nil && r.HolderIdentity == l.Identity() {
		l.fence.RecordRenewal(sentAt)
	}
	return err
}

// Get reads the lease. A leader does so after a failed renewal. If the lease has another
// holder, Get closes the fence at once; client-go would go on trying to renew until the
// renew deadline.
func (l *fencedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := l.Interface.Get(ctx)
	if err == nil && r.HolderIdentity != l.Identity() {
		l.fence.RecordLoss()
	}
	return r, raw, err
}

// deferredProvider provides recorders that use the manager's recorder, which does not exist
// yet when the lock is made.
type deferredProvider struct {
	recorder.Provider

	lock *fencedLock
}

// GetEventRecorderFor implements recorder.Provider.
func (p deferredProvider) GetEventRecorderFor(name string) record.EventRecorder {
	return deferredRecorder{name: name, lock: p.lock}
}

type deferredRecorder struct {
	record.EventRecorder // nil: a lock calls only Eventf

	name string
	lock *fencedLock
}

// Eventf implements resourcelock.EventRecorder.
func (r deferredRecorder) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	//nolint:staticcheck // controller-runtime's lock takes this kind of recorder.
	r.lock.recorder.GetEventRecorderFor(r.name).Eventf(object, kind, reason, format, args...)
}
