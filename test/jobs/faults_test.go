package jobs

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/jobs/template"
	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/faults/fault"
	"github.com/ensign-operator/ensign/test/faults/plan"
)

// The points of the plans: the writes of the manager without which a run in a Job does not begin, or
// does not end.
const (
	creation plan.Point = "job-create"
	claim    plan.Point = "job-claim"
	result   plan.Point = plan.StatusResult
	removal  plan.Point = "job-remove"
)

func points() []plan.Point { return []plan.Point{creation, claim, result, removal} }

// exists is a fault of creations alone: the API server has a Job of the name, and shows none.
const exists plan.Fault = "already-exists"

// trial is a plan, whose fault meets the run of one CR.
type trial struct {
	plan.Plan

	cr *unstructured.Unstructured
	// struck is closed when the fault strikes.
	struck chan struct{}

	mu sync.Mutex
	// job is the name of the CR's Job, and since is when the fault struck.
	job   string
	since time.Time
}

func (t *trial) name() string { return string(t.Point) + "-" + string(t.Fault) }

var jobName = regexp.MustCompile(template.Name("[0-9a-f-]{36}"))

func (t *trial) meets(r apiproxy.Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	creates := r.Resource == "jobs" && r.Verb == "create" && strings.Contains(string(r.Body), "/"+t.name()) // It may be no JSON.
	if creates {
		t.job = string(jobName.Find(r.Body))
	}
	is := creates
	switch t.Point {
	case claim:
		is = r.Resource == "jobs" && r.Verb == "patch" && r.Name == t.job && strings.Contains(string(r.Body), template.ClaimAnnotation)
	case result:
		is = r.Subresource == "status" && r.Name == t.name() && strings.Contains(string(r.Body), `"Successful"`)
	case removal:
		is = r.Resource == "jobs" && r.Verb == "delete" && r.Name == t.job
	}
	return is && (t.since.IsZero() || time.Since(t.since) < fault.Window(t.Fault))
}

// arm prepares the fault. strike is called when it strikes: before or after the write, as it is.
func (t *trial) arm(proxy *apiproxy.Proxy, strike func()) {
	hits := func() {
		t.mu.Lock()
		first := t.since.IsZero()
		if first {
			t.since = time.Now()
		}
		t.mu.Unlock()
		if first {
			strike()
			close(t.struck)
		}
	}
	proxy.Add(apiproxy.Rule{Match: t.meets, Once: !t.lasts() || t.Fault == plan.Lost, Fault: t.effect(hits)})
}

func (t *trial) lasts() bool { return t.Fault == exists || fault.Lasts(t.Fault) }

func (t *trial) effect(hits func()) apiproxy.Fault {
	if t.Fault != exists {
		return fault.AtWrite(t.Fault, hits)
	}
	status := apierrors.NewAlreadyExists(schema.GroupResource{Group: "batch", Resource: "jobs"}, t.name()).ErrStatus
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(status)
	Expect(err).NotTo(HaveOccurred())
	return apiproxy.Fault{Before: func(apiproxy.Request) { hits() }, Withhold: true, Code: http.StatusConflict, Body: body}
}

// faulty is an operator whose managers reach the API server through a fault proxy.
type faulty struct {
	operator

	proxy *apiproxy.Proxy
}

func newFaulty(ctx context.Context) faulty {
	GinkgoHelper()
	o := faulty{operator: newOperator(ctx, "10m")}
	var err error
	o.proxy, err = apiproxy.Start(ground.Cluster.Config)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(o.proxy.Close)
	o.Options.Kubeconfig = filepath.Join(o.Dir, "kubeconfig")
	Expect(o.proxy.WriteKubeconfig(o.Options.Kubeconfig)).To(Succeed())
	o.Start(ctx, work.Kind)
	return o
}

// begin arms the fault and creates the CR.
func (o faulty) begin(ctx context.Context, p plan.Plan, strike func()) *trial {
	GinkgoHelper()
	t := &trial{Plan: p, struck: make(chan struct{})}
	t.arm(o.proxy, strike)
	t.cr = o.create(ctx, t.name(), map[string]any{"seconds": 0.5, "writes": true})
	return t
}

// judge waits for the end of the trial: the one run of the CR has succeeded, and nothing is left of it.
func (o faulty) judge(ctx context.Context, t *trial) {
	GinkgoHelper()
	Eventually(ctx, t.struck).Should(BeClosed(), "%s strikes", t)
	Eventually(ctx, o.Condition(t.cr, "Successful")).Should(HaveField("Status", "True"), t.String())
	Expect(counted(t.cr, begins)).To(Equal(1), "%s: the runs", t)
	Expect(counted(t.cr, ends)).To(Equal(1), "%s: the runs that ended", t)
	// Only a person can help where the Job may not be created, so that the status says it.
	Expect(o.Failed(t.cr)()).To(Or(Equal(0), Satisfy(func(int) bool { return t.Point == creation && t.Fault == plan.Forbidden })), "%s: runs that failed", t)
	made := &corev1.ConfigMap{}
	Expect(ground.Client.Get(ctx, client.ObjectKeyFromObject(t.cr), made)).To(Succeed())
	Expect(made.OwnerReferences).To(ConsistOf(HaveField("UID", t.cr.GetUID())))
}

var _ = Describe("a run in a Job, under faults of the API", Label("long"), func() {
	It("is one run, whose result is neither lost nor invented, whatever meets its writes", func(ctx SpecContext) {
		o := newFaulty(ctx)
		trials := []*trial{o.begin(ctx, plan.Plan{Operation: plan.Create, Point: creation, Fault: exists}, func() {})}
		for _, point := range points() {
			for _, f := range plan.Faults() {
				if fault.Lasts(f) && (point != removal || f != plan.Forbidden) { // Whoever may not delete the Job does not try again.
					trials = append(trials, o.begin(ctx, plan.Plan{Operation: plan.Create, Point: point, Fault: f}, func() {}))
				}
			}
		}
		for _, t := range trials {
			o.judge(ctx, t)
		}
		o.leavesNothing(ctx)
	})

	It("is one run, whose result is neither lost nor invented, when the manager is killed at its writes", func(ctx SpecContext) {
		o := newFaulty(ctx)
		for _, point := range points() {
			for _, f := range []plan.Fault{plan.CrashBefore, plan.CrashAfter} {
				pid := o.PID()
				t := o.begin(ctx, plan.Plan{Operation: plan.Create, Point: point, Fault: f}, func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
				Eventually(ctx, t.struck).Should(BeClosed(), "%s strikes", t)
				Expect(o.Kill()).To(Succeed())
				o.Start(ctx, work.Kind)
				o.judge(ctx, t)
				o.leavesNothing(ctx)
			}
		}
		all, err := signs()
		Expect(err).NotTo(HaveOccurred())
		Expect(overlaps(all)).To(BeEmpty())
	})
})
