package charts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
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
	killed    atomic.Int64 // how many processes of chart-exec
	// every says that faults meet any request, and one only, instead of writes and their repetitions.
	every bool
}

// subject begins the names of CRs, objects those of a release's objects end with.
const subject = "subject"

var objects = []string{"-a", "-b", "-c"}

func newFaultLab(ctx context.Context, every bool) *faultLab {
	GinkgoHelper()
	hook := func(when string) string {
		return configMap(when, fmt.Sprintf(`{"helm.sh/hook": "%[1]s-install,%[1]s-upgrade,%[1]s-delete", "helm.sh/hook-delete-policy": before-hook-creation}`, when), "a: b")
	}
	text := `a: {{ .Values.a | quote }}`
	l := &faultLab{every: every, Site: charted(ctx, map[string]string{
		"a.yaml": configMap("a", "{}", text), "b.yaml": configMap("b", "{}", text), "c.yaml": configMap("c", "{}", text), "p.yaml": plain["p.yaml"],
		"pre.yaml": hook("pre"), "post.yaml": hook("post"),
	}, "")}
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

// matters reports whether a request is about a CR, its release, its entry in the ledger or its objects. The
// manager notes the kinds of children and the key of releases once.
func (l *faultLab) matters(r apiproxy.Request) bool {
	notes := strings.Contains(r.Name, "ensign-children") || bytes.Contains(r.Body, []byte(`"ensign-children"`)) || bytes.Contains(r.Body, []byte(`"ensign-seal","namespace"`))
	switch {
	case notes || r.Verb == "watch" || r.Resource == "leases" || r.Resource == "events":
		return false
	case l.every: // The kinds of the API server are asked for too.
		return r.Resource == "" || strings.Contains(r.Path, l.Namespace)
	}
	return changes(r) && strings.Contains(r.Path, l.Namespace)
}

// changes reports whether a request may change something.
func changes(r apiproxy.Request) bool { return r.Write() && r.Query["dryRun"] == nil }

// record returns the requests that each phase makes without a fault, up to the last write of the CR.
func (l *faultLab) record(ctx context.Context) map[string][]apiproxy.Request {
	GinkgoHelper()
	l.live(ctx, nil) // The first CR has more.
	all, cr := map[string][]apiproxy.Request{}, l.custom()
	for _, phase := range phases {
		before := len(l.proxy.Journal())
		l.perform(ctx, cr, phase, nil)
		var found []apiproxy.Request
		for _, r := range l.proxy.Journal()[before:] {
			if l.matters(r) {
				found = append(found, r)
			}
			if l.matters(r) && r.Write() && r.Resource == "hellos" {
				all[phase] = found
			}
		}
	}
	return all
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
	before, failed, from := l.revisions(ctx, cr), l.failures(cr), len(l.proxy.Journal())
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
		l.expectHooks(cr, l.proxy.Journal()[from:], p)
		return
	}
	Eventually(ctx, l.Condition(cr, "Successful")).Should(And(HaveField("Status", "True"), HaveField("Generation", cr.GetGeneration())), "%v", p)
	if p != nil && !p.fault.Crash() {
		most += 2 * (l.failures(cr) - failed) // An attempt that fails brings its objects back.
	}
	l.expectRelease(ctx, cr, phase, most, p)
	l.expectHooks(cr, l.proxy.Journal()[from:], p)
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
		met   apiproxy.Request // the request, once it has come
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
			case p.fault == killRun:
				err = l.killRuns(manager)
			case p.fault == plan.Away:
				time.AfterFunc(fault.Window(p.fault), l.proxy.Away())
			}
			struck <- err
		})
	}
	if p.request == 0 {
		time.AfterFunc(p.after, strike)
		return func() {}
	}
	acts := apiproxy.Fault{After: func(apiproxy.Request) { strike() }, Break: true}
	if p.fault != killRun {
		acts = fault.AtWrite(p.fault, strike)
	}
	return l.proxy.Add(apiproxy.Rule{
		Once: l.every || !fault.Lasts(p.fault) || p.fault == plan.Lost, Fault: acts,
		Match: func(r apiproxy.Request) bool {
			mu.Lock()
			defer mu.Unlock()
			if !l.matters(r) {
				return false
			}
			if count++; count == p.request {
				met, over = r, time.Now().Add(fault.Window(p.fault))
			}
			return count >= p.request && time.Now().Before(over) && r.Verb == met.Verb && r.Path == met.Path
		},
	})
}

// killRuns kills what executes of chart-exec.
func (l *faultLab) killRuns(manager *harness.Manager) error {
	all, err := manager.Processes()
	for _, process := range all {
		switch killed := syscall.Kill(process.PID, syscall.SIGKILL); {
		case killed == nil:
			l.killed.Add(1)
		case !errors.Is(killed, syscall.ESRCH):
			err = errors.Join(err, killed)
		}
	}
	return err
}
