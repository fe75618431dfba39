package leases

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// leaseDuration is short, so that many leases can be lost, and leaves 1.5 s for
// the end of runs, which is half of the usual.
// leaseDuration is that of operators: on a busy machine a leader may renew a shorter one too late.
const leaseDuration = 15 * time.Second

// moment is how many signs of life a run may give until it is killed: those of 5 s.
const moment = 250

// way is how a leader loses its lease. What it returns is called when the successor
// is at work.
type way func(o *operator, leader *replica) (afterwards func())

var (
	// partition cuts the leader off.
	partition way = func(_ *operator, leader *replica) func() {
		leader.cut()
		return leader.mend
	}
	// theft makes another holder the lease's, as an administrator can.
	theft way = func(o *operator, _ *replica) func() {
		o.stealLease()
		return func() {}
	}
	// freeze stops all processes of the manager, as the freezer of a container and
	// the suspend of a machine do. Its runs go on with it, until the manager has seen
	// the time.
	freeze way = func(o *operator, leader *replica) func() {
		leader.signal(syscall.SIGSTOP)
		return func() {
			o.woke[leader.name] = time.Now()
			leader.signal(syscall.SIGCONT)
		}
	}
)

// operator is an operator project with two replicas.
type operator struct {
	*site.Site
	journal

	lease   time.Duration
	started int
	faulty  bool // its replicas meet faults of the API
	woke    map[string]time.Time
}

// newOperator makes one with CRs of the names.
func newOperator(ctx context.Context, names ...string) *operator {
	GinkgoHelper()
	if names == nil {
		names = []string{stubborn, gentle, short}
	}
	s := ground.Site(ctx, map[string]string{
		"watches.yaml": fmt.Sprintf("- {group: %s, version: v1, kind: %s, playbook: play.yml}\n", kind.Group, kind.Kind),
		"play.yml":     "- hosts: localhost\n",
	})
	s.Script()
	s.Options.Binary = cmp.Or(*program, s.Options.Binary)
	for _, name := range names {
		s.Create(ctx, harness.Custom(kind, s.Namespace, name, map[string]any{}))
	}
	return &operator{
		Site: s, journal: journal{path: filepath.Join(s.Dir, "journal.jsonl"), lives: map[string]*life{}},
		lease: leaseDuration, woke: map[string]time.Time{},
	}
}

// touch changes the custom resource whose runs are short, again and again, so that
// statuses are being written whenever a lease is lost.
func (o *operator) touch(ctx context.Context) {
	cr := harness.Custom(kind, o.Namespace, short, nil)
	for i := 0; ctx.Err() == nil; i++ {
		patch := fmt.Appendf(nil, `{"spec": {"touched": %d}}`, i)
		_ = ground.Client.Patch(ctx, cr, client.RawPatch(types.MergePatchType, patch)) // The next one will do.
		select {
		case <-ctx.Done():
		case <-time.After(150 * time.Millisecond):
		}
	}
}

func (o *operator) stealLease() {
	GinkgoHelper()
	Eventually(func(ctx context.Context) error {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: leaseName}}
		if err := ground.Client.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
			return err
		}
		lease.Spec.HolderIdentity = new("thief")
		lease.Spec.RenewTime = new(metav1.NewMicroTime(time.Now()))
		return ground.Client.Update(ctx, lease)
	}).WithContext(context.Background()).Should(Succeed())
}

// succession lets one leader after another lose its lease, and judges.
func (o *operator) succession(ctx context.Context, ways ...way) {
	GinkgoHelper()
	touching, stop := context.WithCancel(ctx)
	defer stop()
	leader := o.start()
	o.leads(ctx, leader)
	go o.touch(touching)
	for i, lose := range ways {
		standby := o.start()
		By(fmt.Sprintf("taking the lease from %s, loss %d of %d", leader.name, i+1, len(ways)))
		o.leads(ctx, leader)
		afterwards := lose(o, leader)
		o.leads(ctx, standby)
		afterwards()
		leader.exited(ctx, 1)
		leader = standby
	}
	stop()
	o.judge(len(ways) + 1)
}

// leads waits until the replica is at work.
func (o *operator) leads(ctx context.Context, r *replica) {
	GinkgoHelper()
	Eventually(ctx, func() (bool, error) {
		if code := r.ExitCode(); code >= 0 {
			return false, StopTrying(fmt.Sprintf("%s ended with %d", r.name, code))
		}
		return o.atWork(r.name, stubborn, gentle), nil
	}).Should(BeTrue(), "%s has live runs", r.name)
}

func (o *operator) judge(leaders int) {
	GinkgoHelper()
	overlaps, afterWaking := o.overlaps(o.woke)
	Expect(overlaps).To(BeEmpty(), "runs of one custom resource at the same time")
	reigns, late := readAudit(o.Namespace)
	Expect(late).To(BeEmpty(), "requests of former leaders")
	Expect(reigns).To(HaveLen(leaders))
	for _, r := range reigns[:leaders-1] {
		Expect(r.writes).To(HaveKey("configmaps"), "%s had nothing to lose: its runs wrote nothing", r.replica)
		Expect(r.writes).To(HaveKey(strings.ToLower(kind.Kind)+"s/status"), "%s had nothing to lose: it reported nothing", r.replica)
	}
	GinkgoWriter.Printf("%d leaders, %d runs; stopped runs gave %d signs of life at most before they were killed\n", leaders, len(o.lives), afterWaking)
	Expect(afterWaking).To(BeNumerically("<", moment), "runs that were stopped go on")
}

var _ = Describe("a lost lease", func() {
	It("leaves nothing to a former leader, be it cut off, robbed or stopped", func(ctx context.Context) {
		newOperator(ctx).succession(ctx, partition, theft, freeze)
	})
})

var _ = Describe("an orderly stop", func() {
	It("hands the lease over as soon as nothing of the leader is left", func(ctx context.Context) {
		o := newOperator(ctx)
		o.lease = time.Hour // Whoever waits until it runs out waits in vain.
		leader := o.start()
		o.leads(ctx, leader)
		touching, stop := context.WithCancel(ctx)
		defer stop()
		go o.touch(touching)
		standby := o.start()
		Expect(standby.Logged(ctx, regexp.MustCompile("Attempting to acquire leader lease"))).To(Succeed())
		Expect(o.atWork(leader.name, stubborn, gentle)).To(BeTrue(), "there are runs to be ended")
		Expect(syscall.Kill(leader.PID(), syscall.SIGTERM)).To(Succeed())
		o.leads(ctx, standby)
		leader.exited(ctx, 0)
		Expect(leader.Log()).NotTo(ContainSubstring("ERROR"))
		stop()
		o.judge(2)
	})

	It("is the only end after which a lease is free", func(ctx context.Context) {
		o := newOperator(ctx)
		leader := o.start()
		o.leads(ctx, leader)
		Expect(leader.Kill()).To(Succeed())
		lease := &coordinationv1.Lease{}
		Expect(ground.Client.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: leaseName}, lease)).To(Succeed())
		Expect(lease.Spec.HolderIdentity).To(HaveValue(Not(BeEmpty())))
	})
})
