package leases

import (
	"context"
	"strings"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/faults/fault"
	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/harness"
)

// faulty returns shards whose managers reach the API server through fault proxies, with a CR for each
// fault, all of which have a live run.
func faulty(ctx context.Context, faults ...plan.Fault) *shards {
	GinkgoHelper()
	var names []string
	for _, f := range faults {
		names = append(names, "with-"+string(f))
	}
	o := newOperator(ctx, names...)
	o.faulty = true
	o.Options.Args = append(o.Options.Args, "--max-concurrent-reconciles=20", "--max-concurrent-runs=20")
	s := shardsOf(o, names...)
	Eventually(ctx, func() bool { return s.atWork(s.replicas[0].name, names...) }).Should(BeTrue())
	return s
}

// meets lets the fault meet the creation or the deletion of the lock of a CR's run by the manager of a
// shard. strike is called when it strikes, and struck is closed then.
func (s *shards) meets(ctx context.Context, f plan.Fault, cr string, shard int, verb string, strike func()) (struck chan struct{}) {
	GinkgoHelper()
	uid := string(s.uid(ctx, cr))
	struck = make(chan struct{})
	var mu sync.Mutex
	var since time.Time
	hits := func() {
		mu.Lock()
		first := since.IsZero()
		if first {
			since = time.Now()
		}
		mu.Unlock()
		if first {
			strike()
			close(struck)
		}
	}
	s.replicas[shard].proxy.Add(apiproxy.Rule{
		Match: func(r apiproxy.Request) bool {
			mu.Lock()
			defer mu.Unlock()
			return r.Resource == "leases" && r.Verb == verb && strings.Contains(r.Name+string(r.Body), uid) && (since.IsZero() || time.Since(since) < fault.Window(f))
		},
		Once: !fault.Lasts(f) || f == plan.Lost, Fault: fault.AtWrite(f, hits),
	})
	return struck
}

func (s *shards) uid(ctx context.Context, cr string) types.UID {
	GinkgoHelper()
	object := harness.Custom(kind, s.Namespace, cr, nil)
	Expect(ground.Client.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: cr}, object)).To(Succeed())
	return object.GetUID()
}

// dies moves the CRs while a manager is killed at its creation or deletion of a lock.
func (s *shards) dies(ctx context.Context, f plan.Fault, verb string) {
	GinkgoHelper()
	shard := s.at // It deletes the locks, and the other one creates them.
	if verb == "create" {
		shard = 1 - s.at
	}
	By("killing a manager at the lock of a run: " + verb + ", " + string(f))
	pid := s.replicas[shard].PID()
	struck := s.meets(ctx, f, s.moved[0], shard, verb, func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	s.move(ctx, func(int, int) {
		Eventually(ctx, struck).Should(BeClosed())
		s.kill(shard)
	})
}

var _ = Describe("a resource that moves from one shard to another, under faults of the API", Label("long"), func() {
	It("has one run at most, whatever meets the locks of runs, also while managers are killed there", func(ctx context.Context) {
		var faults []plan.Fault
		for _, f := range plan.Faults() {
			if fault.Lasts(f) {
				faults = append(faults, f)
			}
		}
		s := faulty(ctx, faults...)
		var struck []chan struct{}
		for i, f := range faults {
			struck = append(struck, s.meets(ctx, f, s.moved[i], 0, "delete", func() {}), s.meets(ctx, f, s.moved[i], 1, "create", func() {}))
		}
		s.move(ctx, func(int, int) {})
		for _, one := range struck {
			Eventually(ctx, one).Should(BeClosed())
		}
		s.dies(ctx, plan.CrashAfter, "create")
		s.dies(ctx, plan.CrashBefore, "delete")
		s.judge(ctx)
	})
})
