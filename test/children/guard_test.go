package children

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"strings"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/ansible/warm"
	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/cores"
	"github.com/ensign-operator/ensign/test/runs/bench"
)

// chosen uses names that a CR has chosen in every way in which kubernetes.core takes them.
//
//go:embed testdata/names.yml
var chosen string

// every is as many names as no list has.
const every = 99

// guarded is a bench, and what its runs send to the API server.
type guarded struct {
	*bench.Bench
	*listener
	own, other string
	kubeconfig []byte
	decoys     []client.Object
	modules    []string // why modules had interpreters of their own; "" for a fork
}

// newGuarded makes one, with objects that no run may reach.
func newGuarded(ctx context.Context) *guarded {
	GinkgoHelper()
	l, config := listenTo(cluster.Config)
	g := &guarded{listener: l, own: ground.Namespace(ctx), other: ground.Namespace(ctx)}
	for _, namespace := range []string{g.own, g.other} {
		place := metav1.ObjectMeta{Namespace: namespace, Name: "x"}
		deployment := &appsv1.Deployment{ObjectMeta: place, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nothing"}}}},
		}}
		for _, object := range []client.Object{&corev1.ConfigMap{ObjectMeta: place}, &corev1.Secret{ObjectMeta: place}, deployment} {
			Expect(k8s.Create(ctx, object)).To(Succeed())
			g.decoys = append(g.decoys, object)
		}
	}
	cr := harness.Custom(box, g.own, "cr", map[string]any{}) // Without it, the children would be collected.
	Expect(k8s.Create(ctx, cr)).To(Succeed())
	var revoke func()
	var err error
	g.kubeconfig, revoke, err = startProxy(config).Grant(access.Owner{GVK: cr.GroupVersionKind(), Namespace: g.own, Name: cr.GetName(), UID: cr.GetUID()})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(revoke)
	g.Bench = bench.New(GinkgoTB(), cores.Find(GinkgoTB(), ".venv"), map[string]string{"names.yml": chosen})
	g.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + g.Content, "LC_ALL=C.UTF-8"}
	return g
}

// play runs a playbook with so many names of each list, and returns its result and what failed last.
func (g *guarded) play(ctx context.Context, book string, most int) (runner.Result, string) {
	var last string
	result, events := g.Do(ctx, runner.Spec{
		Playbook: g.In(book), Kubeconfig: g.kubeconfig, ExtraVars: fmt.Appendf(nil, `{"own": %q, "other": %q, "most": %d}`, g.own, g.other, most),
	})
	for _, e := range events {
		if strings.HasSuffix(string(e.Kind), "on_failed") {
			last = fmt.Sprintf("%s: %v", e.TaskPath, e.Result)
		}
	}
	return result, last
}

// heat lets further runs be warm, with their modules.
func (g *guarded) heat() {
	GinkgoHelper()
	g.Serve(warm.Options{
		Logger: logr.Discard(), OnModule: func(reason string) { g.mu.Lock(); g.modules = append(g.modules, reason); g.mu.Unlock() },
	})
	g.Heat(bench.IsWarm)
}

// nothingElse fails if a request of a run has reached the API server that names another object, or
// if one is not as it was.
func (g *guarded) nothingElse(ctx context.Context) {
	GinkgoHelper()
	named := 0
	for _, request := range append(g.take(), g.reads...) {
		_, path, isResource := strings.Cut(request, "/namespaces/")
		if !isResource {
			continue
		}
		named++
		Expect(path).To(MatchRegexp("^"+g.own+"/configmaps($|/(x%23b?|x%3FdryRun=All|a\\.b-c\\.0|n{253}|gr%C3%B6%C3%9Fe)$|\\?)"), request)
		Expect(path).NotTo(Or(ContainSubstring("dryRun=All&"), HaveSuffix("/")), request)
	}
	Expect(named).To(BeNumerically(">", 10))
	for _, object := range g.decoys {
		before := object.GetGeneration() // Of a Deployment; controllers change its status.
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		Expect(object.GetGeneration()).To(Equal(before), "%T in %s", object, object.GetNamespace())
		Expect(object.GetDeletionTimestamp()).To(BeNil())
		Expect(object.GetLabels()).To(BeEmpty())
	}
}

var _ = DescribeTable("a name that a CR has chosen", func(ctx context.Context, isWarm bool, most int) {
	g := newGuarded(ctx)
	if isWarm {
		g.heat()
	}
	result, failed := g.play(ctx, "names.yml", most)
	Expect(result.Outcome.Verdict).To(Equal(content.Succeeded), "%+v\n%s", result.Outcome, failed)
	Expect(result.Warm).To(Equal(isWarm))
	if isWarm {
		Expect(g.modules).To(HaveEach(BeElementOf("", "variable"))) // The task with a PYTHONPATH.
	}
	g.nothingElse(ctx)
},
	Entry("reaches no other object by kubernetes.core in a warm run", true, every),
	Entry("reaches no other object by kubernetes.core in a cold run, one name in each way", false, 1), // Each module takes seconds.
	Entry("reaches no other object by kubernetes.core in a cold run", Label("long"), false, every),
)
