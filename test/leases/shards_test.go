package leases

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

// shards are two managers of an operator: one of the CRs without the label "shard", one of those
// with "shard=b".
type shards struct {
	*operator

	selectors [2]string
	replicas  [2]*replica
	names     [2]map[string]bool // of all replicas that a shard had
	moved     []string           // the CRs that move
	at        int                // whose they are
}

func newShards(ctx context.Context) *shards {
	GinkgoHelper()
	return shardsOf(newOperator(ctx), stubborn, gentle)
}

// shardsOf starts the shards of an operator, of which the CRs move.
func shardsOf(o *operator, moved ...string) *shards {
	GinkgoHelper()
	s := &shards{operator: o, selectors: [2]string{"!shard", "shard=b"}, moved: moved}
	for i := range s.replicas {
		s.names[i] = map[string]bool{}
		s.startAgain(i)
	}
	return s
}

func (s *shards) startAgain(i int) {
	GinkgoHelper()
	s.replicas[i] = s.start("--watch-label-selector=" + s.selectors[i])
	s.names[i][s.replicas[i].name] = true
}

// runs counts the runs of a CR that the managers of a shard have begun.
func (s *shards) runs(i int, cr string) (count int) {
	GinkgoHelper()
	for _, l := range s.update() {
		if s.names[i][l.Replica] && l.CR == cr {
			count++
		}
	}
	return count
}

// move gives the CRs to the other shard while their runs are live, and waits until they are live
// there. happens is called after the labels have changed.
func (s *shards) move(ctx context.Context, happens func(from, to int)) {
	GinkgoHelper()
	from, to := s.at, 1-s.at
	label := map[int]string{0: "null", 1: `"b"`}[to]
	before := map[string]int{}
	for _, cr := range s.moved {
		before[cr] = s.runs(to, cr)
		patch := fmt.Appendf(nil, `{"metadata": {"labels": {"shard": %s}}}`, label)
		Expect(ground.Client.Patch(ctx, harness.Custom(kind, s.Namespace, cr, nil), client.RawPatch(types.MergePatchType, patch))).To(Succeed())
	}
	happens(from, to)
	for _, cr := range s.moved {
		Eventually(ctx, func() int {
			s.revive()
			return s.runs(to, cr)
		}).Should(BeNumerically(">", before[cr]), "%s runs in the shard %s", cr, s.selectors[to])
	}
	s.at = to
}

// revive starts managers that have ended by themselves, as a kubelet does: on a machine that is too
// busy for them to renew their lease, they may have lost it.
func (s *shards) revive() {
	GinkgoHelper()
	for i, r := range s.replicas {
		if code := r.ExitCode(); code >= 0 {
			GinkgoWriter.Printf("%s has ended with %d\n", r.name, code)
			s.startAgain(i)
		}
	}
}

// kill ends a manager and its runs as the end of its pod does, and starts the next one of the shard.
func (s *shards) kill(i int) {
	GinkgoHelper()
	Expect(s.replicas[i].Kill()).To(Succeed())
	s.startAgain(i)
}

func (s *shards) locks(ctx context.Context) (names []string, err error) {
	leases := &coordinationv1.LeaseList{}
	err = ground.Client.List(ctx, leases, client.InNamespace(s.Namespace))
	for _, lease := range leases.Items {
		if strings.HasPrefix(lease.Name, leaseName+"-run-") {
			names = append(names, lease.Name)
		}
	}
	return names, err
}

// judge stops the managers, and judges.
func (s *shards) judge(ctx context.Context) {
	GinkgoHelper()
	Expect(s.locks(ctx)).To(HaveLen(len(s.moved)), "the live runs are locked")
	for _, r := range s.replicas {
		r.end()
	}
	GinkgoWriter.Printf("%d runs by %d managers\n", len(s.lives), s.started)
	overlaps, _ := s.overlaps(nil)
	Expect(overlaps).To(BeEmpty(), "runs of one custom resource at the same time")
	Expect(s.locks(ctx)).To(BeEmpty())
}

var _ = Describe("a resource that moves from one shard to another", func() {
	It("has one run at most, also while managers are killed, and every resource is somebody's", func(ctx context.Context) {
		s := newShards(ctx)
		s.leads(ctx, s.replicas[0])
		quiet := func(int, int) {}
		s.move(ctx, quiet)
		s.move(ctx, quiet)
		s.move(ctx, func(from, _ int) { s.kill(from) })
		s.move(ctx, func(_, to int) { s.kill(to) })
		s.judge(ctx)
	})
})

var _ = Describe("a manager of all resources that starts beside shards", func() {
	It("runs nothing for a resource that has a run in a shard", func(ctx context.Context) {
		s := newShards(ctx)
		s.leads(ctx, s.replicas[0])
		whole := s.start()
		Eventually(ctx, func() (string, error) {
			for _, l := range s.update() {
				if l.Replica == whole.name && l.CR != short {
					return "", StopTrying("it runs " + l.CR)
				}
			}
			return whole.Log()
		}).Should(ContainSubstring("waiting for the resource's run in another shard to end"))
		for _, r := range s.replicas {
			r.end()
		}
		s.leads(ctx, whole)
		overlaps, _ := s.overlaps(nil)
		Expect(overlaps).To(BeEmpty(), "runs of one custom resource at the same time")
	})
})
