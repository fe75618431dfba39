package leadership

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ensign-operator/ensign/internal/fence"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

func electionOptions(duration, deadline time.Duration) ctrl.Options {
	return WithLeaseTimes(ctrl.Options{
		LeaderElection: true, LeaderElectionID: "lease", LeaderElectionNamespace: "ns", LeaseDuration: &duration, RenewDeadline: &deadline,
	})
}

func TestLeaseTimes(t *testing.T) {
	for why, test := range map[string]struct {
		duration, deadline time.Duration
		wantRetry          time.Duration
		wantLeft           time.Duration // the lease as others count it
	}{
		"the usual times":                     {15 * time.Second, 10 * time.Second, 2 * time.Second, 15 * time.Second},
		"a long lease is renewed as often":    {time.Minute, 10 * time.Second, 2 * time.Second, time.Minute},
		"a short lease is renewed more often": {3 * time.Second, 2 * time.Second, 400 * time.Millisecond, 3 * time.Second},
		"candidates do not read fractions":    {7500 * time.Millisecond, 5 * time.Second, time.Second, 7 * time.Second},
	} {
		t.Run(why, func(t *testing.T) {
			o := electionOptions(test.duration, test.deadline)
			l, err := NewLease(&rest.Config{}, o, LossHandlers{})
			if err != nil {
				t.Fatal(err)
			}
			began := fence.Now()
			l.Fence.RecordRenewal(began)
			left := l.Fence.Remaining()
			if *o.RetryPeriod != test.wantRetry || left > test.wantLeft || left < test.wantLeft-fence.Now().Sub(began) {
				t.Errorf("want a retry of %s and %s left, got %s and %s", test.wantRetry, test.wantLeft, *o.RetryPeriod, left)
			}
		})
	}
}

func TestWithoutLeaderElectionThereIsNoFence(t *testing.T) {
	client := &rest.Config{}
	l, err := NewLease(client, ctrl.Options{}, LossHandlers{})
	if err != nil || l.Fence != nil || l.FencedConfig(client) != client {
		t.Errorf("want nothing changed, got %+v, %v", l, err)
	}
}

func TestTheFenceGuardsAllButTheLock(t *testing.T) {
	client := &rest.Config{Host: "h", UserAgent: "ensign/test"}
	l, err := NewLease(client, electionOptions(15*time.Second, 10*time.Second), LossHandlers{})
	if err != nil {
		t.Fatal(err)
	}
	behind := l.FencedConfig(client)
	if behind.Dial == nil || behind.Host != "h" || client.Dial != nil {
		t.Error("want a copy that dials behind the fence")
	}
	if behind.Timeout != 0 || behind.UserAgent != "ensign/test" {
		t.Errorf("want no watch to end by the lock's timeout, and the manager's name, got %s, %q", behind.Timeout, behind.UserAgent)
	}
}

// A program may reach its API server through a tunnel.
func TestTheFenceGuardsTheDialerOfTheProgram(t *testing.T) {
	near, far := net.Pipe()
	defer func() { _ = far.Close() }()
	client := &rest.Config{Host: "h", Dial: func(context.Context, string, string) (net.Conn, error) { return near, nil }}
	l, err := NewLease(client, electionOptions(15*time.Second, 10*time.Second), LossHandlers{StopRuns: func() {}, EndProcesses: func(time.Duration) {}})
	if err != nil {
		t.Fatal(err)
	}
	l.Fence.RecordRenewal(fence.Now())
	c, err := l.FencedConfig(client).Dial(t.Context(), "tcp", "h:1")
	if err != nil {
		t.Fatal(err)
	}
	l.Fence.RecordLoss()
	if _, err := c.Write([]byte{'.'}); !errors.Is(err, fence.ErrLost) {
		t.Errorf("want %v, got %v", fence.ErrLost, err)
	}
	if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("want the program's connection to end, got %v", err)
	}
	client.Transport = http.DefaultTransport
	if _, err := NewLease(client, electionOptions(15*time.Second, 10*time.Second), LossHandlers{}); err == nil || !strings.Contains(err.Error(), "rest.Config.Transport: ") {
		t.Errorf("want an error that names the transport, which nothing guards, got %v", err)
	}
}

// Half of the time between the closing of the fence and the start of the next leader passes
// between TERM and KILL.
func TestTheGraceOfALostLease(t *testing.T) {
	for why, test := range map[string]struct {
		ago, grace time.Duration // the renewal
	}{
		"another leader was seen early":                              {0, 1500 * time.Millisecond},
		"the lease was not renewed":                                  {12 * time.Second, 1500 * time.Millisecond},
		"the process was stopped, and there is little time":          {13 * time.Second, 500 * time.Millisecond},
		"the process was stopped past its lease: KILL comes at once": {time.Minute, -46500 * time.Millisecond},
	} {
		t.Run(why, func(t *testing.T) {
			var told []string
			ended := make(chan time.Duration, 1)
			h := LossHandlers{StopRuns: func() { told = append(told, "stop") }, EndProcesses: func(grace time.Duration) { ended <- grace }}
			o := h.fenceOptions(electionOptions(15*time.Second, 10*time.Second))
			now := fence.Now()
			o.Now = func() fence.Instant { return now }
			f := fence.New(o)
			f.RecordRenewal(now)
			now = now.Add(test.ago)
			f.RecordLoss()
			if got := <-ended; got != test.grace || len(told) != 1 {
				t.Errorf("want runs to be told once, and %s between TERM and KILL, got %q, %s", test.grace, told, got)
			}
		})
	}
}

// electionCandidate is a candidate of client-go's election on a fake API server.
type electionCandidate struct {
	fence *fence.Fence
	lock  *fencedLock
	ended chan struct{}
}

// failingLock is a lock whose updates fail if err returns an error.
type failingLock struct {
	resourcelock.Interface
	err func() error
}

func (f failingLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if err := f.err(); err != nil {
		return err
	}
	return f.Interface.Update(ctx, r)
}

const shortRetry = 20 * time.Millisecond

// candidateConfig configures a candidate. fail returns the error of its renewals.
// duration is that of the lease, 0 for one that does not run out in a test. fenceDuration is the
// lease duration of its fence, 0 for that of the election.
type candidateConfig struct {
	id                      string
	fail                    func() error
	duration, fenceDuration time.Duration
}

func startCandidate(t *testing.T, server *fake.Clientset, c candidateConfig) electionCandidate {
	t.Helper()
	duration := cmp.Or(c.duration, time.Hour)
	plain := &resourcelock.LeaseLock{Client: server.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: c.id}}
	plain.LeaseMeta.Namespace, plain.LeaseMeta.Name = "ns", "lease"
	e := electionCandidate{
		fence: fence.New(fence.Options{LeaseDuration: cmp.Or(c.fenceDuration, duration), RetryPeriod: shortRetry}),
		ended: make(chan struct{}),
	}
	e.lock = &fencedLock{Interface: failingLock{plain, c.fail}, fence: e.fence}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: e.lock, LeaseDuration: duration, RenewDeadline: duration / 3 * 2, RetryPeriod: shortRetry,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(e.ended)
		elector.Run(t.Context())
	}()
	return e
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	scratch.Eventually(t, what, holds)
}

func succeed() error { return nil }

func TestTheFenceFollowsTheElection(t *testing.T) {
	server := fake.NewClientset()
	first := startCandidate(t, server, candidateConfig{id: "first", fail: succeed})
	eventually(t, "the first candidate leads", first.fence.Held)
	second := startCandidate(t, server, candidateConfig{id: "second", fail: succeed})
	left := first.fence.Remaining()
	eventually(t, "the lease was renewed", func() bool { return first.fence.Remaining() > left })
	if second.fence.Held() {
		t.Error("both lead")
	}
	select {
	case <-second.fence.Lost():
		t.Error("a candidate that sees another leader has nothing to lose")
	default:
	}
}

func TestALeaderWhoseRenewalsFailIsFencedBeforeItsSuccessor(t *testing.T) {
	server := fake.NewClientset()
	failed := make(chan struct{})
	const duration = 3 * time.Second // The lease has to run out.
	first := startCandidate(t, server, candidateConfig{id: "first", duration: duration, fail: func() error {
		select {
		case <-failed:
			return errors.New("no route to the API server")
		default:
			return nil
		}
	}})
	eventually(t, "the first candidate leads", first.fence.Held)
	second := startCandidate(t, server, candidateConfig{id: "second", duration: duration, fail: succeed})
	close(failed)
	eventually(t, "the second candidate leads", func() bool {
		held := second.fence.Held()
		if first.fence.Held() && second.fence.Held() {
			t.Fatal("both lead")
		}
		return held
	})
}

func TestALeaderThatSeesAnotherLeaderIsFencedAtOnce(t *testing.T) {
	server := fake.NewClientset()
	robbed, refused := &atomic.Bool{}, make(chan struct{})
	refusal := sync.OnceFunc(func() { close(refused) })
	e := startCandidate(t, server, candidateConfig{id: "robbed", fenceDuration: time.Hour, fail: func() error {
		if robbed.Load() {
			refusal()
			return apierrors.NewConflict(schema.GroupResource{}, "lease", nil) // The fake does not find out by itself.
		}
		return nil
	}})
	eventually(t, "it leads", e.fence.Held)
	robbed.Store(true)
	<-refused // No renewal is on its way any more that would undo the robbery.
	leases := server.CoordinationV1().Leases("ns")
	lease, err := leases.Get(t.Context(), "lease", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lease.Spec.HolderIdentity = new("thief")
	if _, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it knows", func() bool { return !e.fence.Held() })
	select {
	case <-e.ended:
		t.Error("client-go knew as soon: then the fence has nothing to do here")
	default:
	}
}

func TestAReleaseIsNoRenewal(t *testing.T) {
	f := fence.New(fence.Options{LeaseDuration: time.Hour, RetryPeriod: time.Second})
	lock := &fencedLock{Interface: acceptingLock{}, fence: f}
	if err := lock.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err != nil || f.Held() {
		t.Errorf("want no renewal, got held=%t, %v", f.Held(), err)
	}
	if err := lock.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "self"}); err != nil || !f.Held() {
		t.Errorf("want a renewal, got held=%t, %v", f.Held(), err)
	}
}

// acceptingLock is a lock whose writes all succeed.
type acceptingLock struct{ resourcelock.Interface }

func (acceptingLock) Identity() string { return "self" }

func (acceptingLock) Create(context.Context, resourcelock.LeaderElectionRecord) error { return nil }

func (acceptingLock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return nil }

func TestRelease(t *testing.T) {
	for why, test := range map[string]struct {
		holder    string
		lose      bool
		conflicts int // with a renewal that arrives late
		want      string
	}{
		"a lease that is held":                  {holder: "self", want: ""},
		"a renewal arrives after the election":  {holder: "self", conflicts: 1, want: ""},
		"another leader's lease is left alone":  {holder: "other", want: "other"},
		"a lease that was lost is not given up": {holder: "self", lose: true, want: "self"},
	} {
		t.Run(why, func(t *testing.T) {
			lock := &fakeLock{record: resourcelock.LeaderElectionRecord{HolderIdentity: test.holder, LeaderTransitions: 7}, conflicts: test.conflicts}
			l := Lease{Fence: fence.New(fence.Options{LeaseDuration: time.Hour, RetryPeriod: time.Second})}
			l.lock = &fencedLock{Interface: lock, fence: l.Fence}
			l.Fence.RecordRenewal(fence.Now())
			if test.lose {
				l.Fence.RecordLoss()
			}
			if err := l.Release(); err != nil {
				t.Fatal(err)
			}
			if lock.record.HolderIdentity != test.want || lock.record.LeaderTransitions != 7 {
				t.Errorf("want the holder %q, got %+v", test.want, lock.record)
			}
			if l.Fence.Held() {
				t.Error("want the fence to be closed")
			}
		})
	}
	if err := (Lease{}).Release(); err != nil {
		t.Errorf("want nothing to be done without leader election, got %v", err)
	}
}

// fakeLock is a lock in memory. Its first updates are conflicts.
type fakeLock struct {
	acceptingLock

	record    resourcelock.LeaderElectionRecord
	conflicts int
}

func (h *fakeLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record := h.record
	return &record, nil, nil
}

func (h *fakeLock) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	if h.conflicts > 0 {
		h.conflicts--
		return apierrors.NewConflict(schema.GroupResource{}, "lease", nil)
	}
	h.record = r
	return nil
}
