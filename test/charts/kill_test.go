package charts

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// killLab is an operator whose manager and chart-exec reach the API server by a proxy, which
// kills both at a certain write.
type killLab struct {
	*site.Site

	proxy *apiproxy.Proxy
	crs   int
	// writes are how many a phase makes where nothing is killed.
	writes map[string]int
}

// phases are what the user of a release does, one after the other.
var phases = []string{"install", "upgrade", "uninstall"}

// newKillLab also counts the writes of each phase.
func newKillLab(ctx context.Context) *killLab {
	GinkgoHelper()
	hook := configMap("hook", `{"helm.sh/hook": "pre-install,pre-upgrade,pre-delete", "helm.sh/hook-delete-policy": before-hook-creation}`, "a: b")
	text := `a: {{ .Values.a | quote }}`
	l := &killLab{Site: charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", text), "b.yaml": configMap("b", "{}", text), "c.yaml": configMap("c", "{}", text), "hook.yaml": hook}, ""), writes: map[string]int{}}
	var err error
	l.proxy, err = apiproxy.Start(ground.Cluster.Config)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(l.proxy.Close()).To(Succeed()) })
	l.Options.Kubeconfig = filepath.Join(l.Dir, "kubeconfig")
	Expect(l.proxy.WriteKubeconfig(l.Options.Kubeconfig)).To(Succeed())
	l.Start(ctx, hello.Kind)
	cr := l.custom()
	for _, phase := range phases {
		var count atomic.Int64
		remove := l.proxy.Add(apiproxy.Rule{Name: "count", Match: func(r apiproxy.Request) bool {
			if l.matters(r) {
				count.Add(1)
			}
			return false
		}})
		l.do(ctx, phase, cr)
		l.converges(ctx, phase, cr, 0)
		remove()
		l.writes[phase] = int(count.Load())
	}
	return l
}

// matters reports whether a request is a write of a CR, a release or its objects. The manager
// notes the kinds of children once.
func (l *killLab) matters(r apiproxy.Request) bool {
	notes := r.Name == "ensign-children" || bytes.Contains(r.Body, []byte(`"ensign-children"`))
	return !notes && r.Write() && r.Query["dryRun"] == nil && r.Namespace == l.Namespace && slices.Contains([]string{"secrets", "configmaps", "hellos"}, r.Resource)
}

func (l *killLab) custom() *unstructured.Unstructured {
	l.crs++
	return harness.Custom(hello, l.Namespace, fmt.Sprintf("killed-%d", l.crs), map[string]any{"a": "install"})
}

// do does what begins a phase.
func (l *killLab) do(ctx context.Context, phase string, cr *unstructured.Unstructured) {
	GinkgoHelper()
	switch phase {
	case "install":
		l.Create(ctx, cr)
	case "upgrade":
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"a":"upgrade"}}`)))).To(Succeed())
	default:
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
	}
}

// converges waits for the end of a phase: a revision for each change and at most one for each
// attempt that was killed, none stuck, and the objects as the CR wants them.
func (l *killLab) converges(ctx context.Context, phase string, cr *unstructured.Unstructured, attempts int) {
	GinkgoHelper()
	if phase == "uninstall" {
		for name, object := range map[string]client.Object{"": cr.DeepCopy(), "-a": &corev1.ConfigMap{}, "-b": &corev1.ConfigMap{}, "-c": &corev1.ConfigMap{}} {
			Eventually(ctx, objectNamed(l.Site, cr.GetName()+name, object)).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
		}
		Eventually(ctx, statuses(l.Site, cr.GetName())).Should(BeEmpty())
		return
	}
	Eventually(ctx, l.Condition(cr, "Successful")).Should(And(HaveField("Status", "True"), HaveField("Generation", cr.GetGeneration())))
	all, err := statuses(l.Site, cr.GetName())(ctx)
	Expect(err).NotTo(HaveOccurred())
	changes := slices.Index(phases, phase) + 1
	last := len(all)
	Expect(last).To(And(BeNumerically(">=", changes), BeNumerically("<=", changes+attempts)), "%v", all)
	for number, status := range all { // Helm also calls an attempt superseded that ended after its predecessor was.
		if number == strconv.Itoa(last) {
			Expect(status).To(Equal("deployed"), "%v", all)
		} else {
			Expect(status).To(BeElementOf("superseded", "failed"), "%v", all)
		}
	}
	for _, name := range []string{"-a", "-b", "-c"} {
		object := &corev1.ConfigMap{}
		Expect(objectNamed(l.Site, cr.GetName()+name, object)(ctx)).To(Succeed())
		Expect(object.Data).To(Equal(map[string]string{"a": phase}))
		Expect(object.OwnerReferences).To(ContainElement(HaveField("UID", cr.GetUID())))
	}
}

// kill kills the manager and all that it started at the n-th write of a phase, before or
// after the API server has it, starts the next manager, and waits until all is well.
func (l *killLab) kill(ctx context.Context, phase string, n int, after bool) {
	GinkgoHelper()
	By(fmt.Sprintf("%s: write %d of %d, after it: %v", phase, n, l.writes[phase], after))
	cr := l.custom()
	for _, earlier := range phases[:slices.Index(phases, phase)] {
		l.do(ctx, earlier, cr)
		l.converges(ctx, earlier, cr, 0)
	}
	manager, killed := l.Manager, make(chan error, 1)
	strike := func(apiproxy.Request) { killed <- manager.Kill() }
	fault := apiproxy.Fault{Break: true, After: strike}
	if !after {
		fault = apiproxy.Fault{Break: true, Withhold: true, Before: strike}
	}
	var count atomic.Int64
	remove := l.proxy.Add(apiproxy.Rule{Name: "kill", Once: true, Fault: fault, Match: func(r apiproxy.Request) bool { return l.matters(r) && count.Add(1) == int64(n) }})
	defer remove()
	l.do(ctx, phase, cr)
	var err error
	Eventually(ctx, killed).Should(Receive(&err))
	Expect(err).NotTo(HaveOccurred())
	l.Start(ctx, hello.Kind)
	l.converges(ctx, phase, cr, 1)
}

var _ = Describe("a release whose manager and attempt are killed", func() {
	It("is installed, upgraded and uninstalled by the next manager", func(ctx context.Context) {
		l := newKillLab(ctx)
		for i, phase := range phases {
			Expect(l.writes[phase]).To(BeNumerically(">=", 5))
			l.kill(ctx, phase, l.writes[phase]/2+i, i%2 == 0)
		}
	})
})
