package charts

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/faults/fault"
	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// faultLab is an operator whose manager and chart-exec reach the API server by a proxy, which
// makes the faults. It has one CR at a time.
type faultLab struct {
	*site.Site

	proxy     *apiproxy.Proxy
	crs       int
	converged int
}

// subject begins the names of CRs, objects those of a release's objects end with.
const subject = "subject"

var objects = []string{"-a", "-b", "-c"}

func newFaultLab(ctx context.Context) *faultLab {
	GinkgoHelper()
	hook := configMap("hook", `{"helm.sh/hook": "pre-install,pre-upgrade,pre-delete", "helm.sh/hook-delete-policy": before-hook-creation}`, "a: b")
	text := `a: {{ .Values.a | quote }}`
	l := &faultLab{Site: charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", text), "b.yaml": configMap("b", "{}", text), "c.yaml": configMap("c", "{}", text), "hook.yaml": hook}, "")}
	var err error
	l.proxy, err = apiproxy.Start(ground.Cluster.Config)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(l.proxy.Close()).To(Succeed()) })
	l.Options.Kubeconfig = filepath.Join(l.Dir, "kubeconfig")
	Expect(l.proxy.WriteKubeconfig(l.Options.Kubeconfig)).To(Succeed())
	l.Start(ctx, hello.Kind)
	DeferCleanup(func() { Expect(l.Manager.Kill()).To(Succeed()) }) // It may be another one by then.
	return l
}

// restart starts the next manager. It is called beside the spec, where nothing can be cleaned
// up later.
func (l *faultLab) restart(ctx context.Context) {
	GinkgoHelper()
	var err error
	l.Manager, err = harness.Start(l.Options)
	Expect(err).NotTo(HaveOccurred())
	Expect(l.Ready(ctx, hello.Kind)).To(Succeed())
}

// matters reports whether a request is a write of a CR, of a release, its entry in the ledger or its objects. The
// manager notes the kinds of children and the key of releases once.
func (l *faultLab) matters(r apiproxy.Request) bool {
	notes := strings.Contains(r.Name, "ensign-children") || bytes.Contains(r.Body, []byte(`"ensign-children"`)) || bytes.Contains(r.Body, []byte(`"ensign-seal","namespace"`))
	return !notes && r.Write() && r.Query["dryRun"] == nil && r.Namespace == l.Namespace && slices.Contains([]string{"secrets", "configmaps", "hellos"}, r.Resource)
}

// count returns how many writes each phase makes without a fault.
func (l *faultLab) count(ctx context.Context) map[string]int {
	GinkgoHelper()
	writes, cr := map[string]int{}, l.custom()
	for _, phase := range phases {
		var count atomic.Int64
		remove := l.proxy.Add(apiproxy.Rule{Match: func(r apiproxy.Request) bool {
			if l.matters(r) {
				count.Add(1)
			}
			return false
		}})
		l.perform(ctx, cr, phase, nil)
		remove()
		writes[phase] = int(count.Load())
	}
	return writes
}

func (l *faultLab) custom() *unstructured.Unstructured {
	l.crs++
	return harness.Custom(hello, l.Namespace, fmt.Sprintf("%s-%d", subject, l.crs), map[string]any{"a": "install"})
}

// live performs the plans of a life, and says what each took.
func (l *faultLab) live(ctx context.Context, one life) {
	defer GinkgoRecover() // A plan that fails ends its life, and no other.
	cr := l.custom()
	for _, phase := range phases {
		p, faulty := one.in(phase)
		if !faulty {
			l.perform(ctx, cr, phase, nil)
			continue
		}
		began := time.Now()
		l.perform(ctx, cr, phase, &p)
		l.converged++
		GinkgoWriter.Printf("%-24s converged after %4.1f s\n", p, time.Since(began).Seconds())
	}
}

// perform takes a CR through a phase, under the fault of a plan if there is one, and waits
// until all is well.
func (l *faultLab) perform(ctx context.Context, cr *unstructured.Unstructured, phase string, p *faultPlan) {
	GinkgoHelper()
	before, failed := l.revisions(ctx, cr), l.failures(cr)
	struck := make(chan error, 1)
	if p != nil {
		defer l.arm(*p, struck)()
	}
	switch phase {
	case "install":
		l.Create(ctx, cr)
	case "upgrade":
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"a":"upgrade"}}`)))).To(Succeed())
	default:
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
	}
	most := before + 1
	if p != nil {
		var err error
		Eventually(ctx, struck).Should(Receive(&err), "%s: no such write", p)
		Expect(err).NotTo(HaveOccurred())
		if p.fault.Crash() {
			most++
			l.restart(ctx)
		}
	}
	if phase == "uninstall" {
		l.expectNothing(ctx, cr, p)
		return
	}
	Eventually(ctx, l.Condition(cr, "Successful")).Should(And(HaveField("Status", "True"), HaveField("Generation", cr.GetGeneration())), "%v", p)
	if p != nil && !p.fault.Crash() {
		most += 2 * (l.failures(cr) - failed) // An attempt that fails brings its objects back.
	}
	l.expectRelease(ctx, cr, phase, most)
}

// failures counts the runs of the manager for the CR that have failed.
func (l *faultLab) failures(cr *unstructured.Unstructured) int {
	GinkgoHelper()
	failed, err := l.Failed(cr)()
	Expect(err).NotTo(HaveOccurred())
	return failed
}

// revisions counts those of the release.
func (l *faultLab) revisions(ctx context.Context, cr *unstructured.Unstructured) int {
	GinkgoHelper()
	all, err := statuses(l.Site, cr.GetName())(ctx)
	Expect(err).NotTo(HaveOccurred())
	return len(all)
}

// arm prepares the fault of a plan. struck receives when it strikes.
func (l *faultLab) arm(p faultPlan, struck chan<- error) (disarm func()) {
	var (
		mu    sync.Mutex
		count int
		met   apiproxy.Request // the write, once it has come
		over  time.Time
		once  sync.Once
	)
	manager := l.Manager
	strike := func() {
		once.Do(func() {
			var err error
			switch {
			case p.fault.Crash():
				err = manager.Kill()
			case p.fault == plan.Away:
				time.AfterFunc(fault.Window(p.fault), l.proxy.Away())
			}
			struck <- err
		})
	}
	return l.proxy.Add(apiproxy.Rule{
		Once: !fault.Lasts(p.fault) || p.fault == plan.Lost, Fault: fault.AtWrite(p.fault, strike),
		Match: func(r apiproxy.Request) bool {
			mu.Lock()
			defer mu.Unlock()
			if !l.matters(r) {
				return false
			}
			if count++; count == p.write {
				met, over = r, time.Now().Add(fault.Window(p.fault))
			}
			return count >= p.write && time.Now().Before(over) && r.Verb == met.Verb && r.Path == met.Path
		},
	})
}
