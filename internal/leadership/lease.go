package leadership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlelection "sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/ensign-operator/ensign/internal/fence"
	"github.com/ensign-operator/ensign/pkg/options"
)

// releaseTimeout bounds the release of the lease. A lease that is not released expires.
const releaseTimeout = 3 * time.Second

// Lease is the manager's part in leader election. Without leader election, its zero value.
type Lease struct {
	// Fence is nil without leader election: a nil fence is always open.
	Fence *fence.Fence
	lock  *fencedLock
}

// LossHandlers are called when the lease is lost.
type LossHandlers struct {
	// StopRuns ends all runs and lets no other begin.
	StopRuns func()
	// EndProcesses sends all processes of runs TERM at once, and KILL after grace.
	EndProcesses func(grace time.Duration)
}

// NewLease prepares leader election if the options ask for it. CheckElection has passed, and
// WithLeaseTimes has set the times.
func NewLease(client *rest.Config, o ctrl.Options, h LossHandlers) (l Lease, err error) {
	if !o.LeaderElection {
		return Lease{}, nil
	}
	if client.Transport != nil {
		return Lease{}, &options.Error{Field: "rest.Config.Transport", Err: errors.New("with leader election the manager needs connections of its own, which end when the lease is lost: set Dial instead")}
	}
	if o.LeaderElectionConfig != nil {
		client = o.LeaderElectionConfig
	}
	l.lock = &fencedLock{}
	// A copy, because NewResourceLock sets a timeout and a user agent in its configuration.
	l.lock.Interface, err = ctrlelection.NewResourceLock(rest.CopyConfig(client), deferredProvider{lock: l.lock}, ctrlelection.Options{
		LeaderElection:             true,
		LeaderElectionResourceLock: o.LeaderElectionResourceLock,
		LeaderElectionID:           o.LeaderElectionID,
		LeaderElectionNamespace:    o.LeaderElectionNamespace,
		RenewDeadline:              *o.RenewDeadline,
		LeaderLabels:               o.LeaderElectionLabels,
	})
	if err != nil {
		return Lease{}, fmt.Errorf("prepare leader election: %w", err)
	}
	l.Fence = fence.New(h.fenceOptions(o))
	l.lock.fence = l.Fence
	return l, nil
}

// ElectionOptions returns the options of a controller-runtime manager with this lease. Its own
// servers for probes and profiles are off.
func (l Lease) ElectionOptions(log logr.Logger, o ctrl.Options) ctrl.Options {
	o.Logger, o.HealthProbeBindAddress, o.PprofBindAddress = log, "0", "" // observe/probes and package operator serve them.
	if l.lock != nil {
		o.LeaderElectionResourceLockInterface, o.LeaderElectionConfig = l.lock, nil
	}
	return o
}

// SetRecorder sets the recorder for the Events of the lock.
func (l Lease) SetRecorder(p recorder.Provider) {
	if l.lock != nil {
		l.lock.recorder = p
	}
}

// fenceOptions returns options with which the runs end between the closing of the fence and
// the moment at which another replica may lead. Half of this time passes between TERM and
// KILL; the other half is for delays. The grace time of an orderly stop would be too long,
// also for runs that such a stop is ending already.
func (h LossHandlers) fenceOptions(o ctrl.Options) fence.Options {
	settings := fence.Options{
		// The lease object holds whole seconds, which other candidates read.
		LeaseDuration: o.LeaseDuration.Truncate(time.Second),
		RetryPeriod:   *o.RetryPeriod,
	}
	grace := settings.Margin() / 2
	settings.OnLost = func(late time.Duration) {
		h.StopRuns()
		go h.EndProcesses(grace - late)
	}
	return settings
}

// FencedConfig returns a configuration whose connections end when the lease is lost. The
// lock of leader election does not use it, because it releases the lease after the fence
// has closed.
func (l Lease) FencedConfig(client *rest.Config) *rest.Config {
	if l.Fence == nil {
		return client
	}
	client = rest.CopyConfig(client)
	if client.Dial == nil {
		client.Dial = l.Fence.Dial
	} else {
		client.Dial = l.Fence.Guard(client.Dial)
	}
	return client
}

// Release releases the lease, so that the next leader need not wait until it expires. Every
// run must have ended: the release is this process's last request to the API. A lease that
// is not surely held is not released.
func (l Lease) Release() error {
	if !l.Fence.Close() {
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

// Check returns an error if the lease may be lost.
func (l Lease) Check(context.Context) error {
	if !l.Fence.Held() {
		return fence.ErrLost
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
