//go:build long

package jobs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/procfs"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

const (
	kills   = 300
	crowd   = 50
	apiAway = 10 * time.Second
)

var _ = Describe("50 runs in Jobs at any time, and 300 kills", func() {
	It("has no two runs of a resource at once, loses no result, invents no success, and converges", func(ctx SpecContext) {
		o := newOperator(ctx, "10m")
		o.Start(ctx, work.Kind)
		var crs []*unstructured.Unstructured
		for i := range crowd {
			crs = append(crs, o.create(ctx, "cr-"+strconv.Itoa(i), map[string]any{"seconds": 2 + 10*rand.Float64()}))
		}
		ended := map[string]time.Time{} // Pods that were ended, by the UID of the CR, with the time.
		for i := range kills {
			o.change(ctx, crs)
			switch n := rand.IntN(100); {
			case n < 15:
				Expect(o.Kill()).To(Succeed())
				o.Start(ctx, work.Kind)
			case n < 25:
				Expect(o.Stop()).To(Succeed())
				o.Start(ctx, work.Kind)
			case n < 28:
				pid := apiServer()
				Expect(syscall.Kill(pid, syscall.SIGSTOP)).To(Succeed())
				<-time.After(apiAway)
				Expect(syscall.Kill(pid, syscall.SIGCONT)).To(Succeed())
			default:
				pods, err := o.pods(ctx)
				Expect(err).NotTo(HaveOccurred())
				if len(pods) == 0 {
					continue
				}
				pod := pods[rand.IntN(len(pods))]
				ended[strings.TrimPrefix(pod.Labels["batch.kubernetes.io/job-name"], "ensign-run-")] = time.Now()
				switch n % 3 { // It may have gone meanwhile.
				case 0:
					_ = node.Kill(pod.Name)
				case 1:
					_ = node.Evict(pod.Name, "The node was low on resource: memory.")
				default:
					_ = ground.Client.Delete(ctx, &pod)
				}
			}
			if i%25 == 24 {
				GinkgoWriter.Printf("%d of %d kills\n", i+1, kills)
			}
			<-time.After(time.Duration(rand.IntN(800)) * time.Millisecond)
		}
		for _, cr := range crs {
			Eventually(ctx, func(ctx context.Context) (bool, error) {
				err := ground.Client.Get(ctx, client.ObjectKeyFromObject(cr), cr)
				done := harness.ConditionOf(cr, "Successful")
				return done.Status == "True" && done.Generation == cr.GetGeneration(), err
			}).Should(BeTrue(), cr.GetName())
		}
		o.leavesNothing(ctx)
		judge(crs, ended)
	})
})

// change gives the CRs that are through something to do again.
func (o operator) change(ctx context.Context, crs []*unstructured.Unstructured) {
	for _, cr := range crs {
		done, err := o.Condition(cr, "Successful")(ctx)
		if err != nil || done.Status != "True" {
			continue
		}
		patch := fmt.Appendf(nil, `{"spec": {"seconds": %f}}`, 2+10*rand.Float64())
		_ = ground.Client.Patch(ctx, cr.DeepCopy(), client.RawPatch(types.MergePatchType, patch)) // Another round may do it.
	}
}

// judge looks at all that the runs have left in the journal.
func judge(crs []*unstructured.Unstructured, ended map[string]time.Time) {
	GinkgoHelper()
	all, err := signs()
	Expect(err).NotTo(HaveOccurred())
	Expect(overlaps(all)).To(BeEmpty(), "two runs at once")
	for _, cr := range crs {
		complete, uid := map[int64]time.Time{}, string(cr.GetUID())
		for _, s := range all {
			switch at, known := complete[s.Generation]; {
			case s.UID != uid:
			case s.Is == ends:
				complete[s.Generation] = s.At
			case s.Is == begins && known && ended[uid].Before(at):
				Fail(fmt.Sprintf("%s: the result of generation %d, of %s, was lost: it ran again at %s", cr.GetName(), s.Generation, at, s.At))
			}
		}
		Expect(complete).To(HaveKey(cr.GetGeneration()), "%s succeeded without a run of its last generation", cr.GetName())
	}
}

// apiServer is the process of the suite's own.
func apiServer() int {
	GinkgoHelper()
	all, err := procfs.AllProcs()
	Expect(err).NotTo(HaveOccurred())
	for _, p := range all {
		cwd, _ := p.Cwd() // It may have ended.
		if name, _ := p.Comm(); strings.HasPrefix(name, "kube-api") && cwd != "" && filepath.Clean(cwd) == filepath.Clean(ground.Cluster.DataDir) {
			return p.PID
		}
	}
	Fail("no API server")
	return 0
}

var _ = Describe("200 resources at once under a quota of four pods", func() {
	It("all get their turn, one kind as the other", func(ctx SpecContext) {
		entries := fmt.Sprintf(entry, played, "30m", "")
		o := operatorOf(ctx, map[string]string{
			"watches.yaml": entries + strings.ReplaceAll(entries, "kind: Work", "kind: Deed"), "play.yml": "- hosts: localhost\n  tasks: []\n",
		}, []string{"VIRTUAL_ENV=" + played}, "--max-concurrent-jobs=8", "--max-concurrent-reconciles=100")
		o.allowPods(ctx, "4")
		o.Start(ctx, work.Kind, deed.Kind)
		byUID := map[string]string{}
		var crs []*unstructured.Unstructured
		for _, kind := range []string{work.Kind, deed.Kind} {
			for i := range 100 {
				gk := work
				gk.Kind = kind
				cr := harness.Custom(gk, o.Namespace, strings.ToLower(kind)+"-"+strconv.Itoa(i), map[string]any{"seconds": 0.2})
				o.Create(ctx, cr)
				byUID[string(cr.GetUID())] = kind
				crs = append(crs, cr)
			}
		}
		for _, cr := range crs {
			Expect(o.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		}
		all, err := signs()
		Expect(err).NotTo(HaveOccurred())
		var order []string
		for _, s := range all {
			if kind := byUID[s.UID]; kind != "" && s.Is == ends {
				order = append(order, kind)
			}
		}
		first := map[string]int{}
		for _, kind := range order[50:150] { // Work was created first.
			first[kind]++
		}
		Expect(first[work.Kind]).To(BeNumerically("~", 50, 30), "of the hundred in the middle")
		o.leavesNothing(ctx)
	})
})

var _ = Describe("a run of twenty minutes", func() {
	It("outlives three restarts of the manager", func(ctx SpecContext) {
		o := newOperator(ctx, "1h")
		o.Start(ctx, work.Kind)
		cr := o.create(ctx, "long", map[string]any{"seconds": 1200.0})
		at(ctx, cr, lives, 1)
		for range 3 {
			<-time.After(5 * time.Minute)
			Expect(o.Stop()).To(Succeed())
			o.Start(ctx, work.Kind)
		}
		Eventually(ctx, o.Condition(cr, "Successful"), time.Hour).Should(HaveField("Status", "True"))
		Expect(counted(cr, begins)).To(Equal(1))
		o.leavesNothing(ctx)
	})
})

var _ = Describe("a run that ends while no manager is there, nor comes before its pod has gone", func() {
	It("has its result all the same, by the termination message", func(ctx SpecContext) {
		o := newOperator(ctx, "10m")
		o.Start(ctx, work.Kind)
		good, bad := o.create(ctx, "good", map[string]any{"seconds": 3.0}), o.create(ctx, "bad", map[string]any{"seconds": 3.0, "fails": true})
		at(ctx, good, lives, 1)
		at(ctx, bad, lives, 1)
		Expect(o.Kill()).To(Succeed())
		Eventually(ctx, func(ctx context.Context) (bool, error) {
			pods, err := o.pods(ctx)
			return len(pods) == 2 && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodSucceeded }), err
		}).Should(BeTrue(), "the agents give up")
		o.Start(ctx, work.Kind)
		Expect(o.Outcome(ctx, good)).To(HaveField("Reason", "Successful"))
		Expect(counted(good, begins)).To(Equal(1))
		Expect(o.Outcome(ctx, bad)).To(HaveField("Reason", "Failed"))
		Expect(ground.Client.Delete(ctx, bad)).To(Succeed())
		o.leavesNothing(ctx)
	})
})
