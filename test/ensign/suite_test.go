package ensign

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/pkg/ensign"
	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const interval = 50 * time.Millisecond

var (
	ground *site.Ground
	k8s    client.WithWatch
	// Notes and letters are served by roles, hellos by the example's chart.
	note   = schema.GroupKind{Group: "demo.example.com", Kind: "Note"}
	letter = schema.GroupKind{Group: "demo.example.com", Kind: "Letter"}
	hello  = schema.GroupKind{Group: "demo.example.com", Kind: "Hello"}
)

func TestEnsign(t *testing.T) { site.Run(t, "ensign", harness.WaitTimeout, interval) }

var _ = BeforeSuite(func(ctx context.Context) {
	ground = site.Prepare(ctx, controlplane.Options{})
	k8s = ground.Client
	text, err := os.ReadFile("../../examples/hello/crds/hellos.yaml")
	Expect(err).NotTo(HaveOccurred())
	hellos := &apiextensionsv1.CustomResourceDefinition{}
	Expect(yaml.Unmarshal(text, hellos)).To(Succeed())
	// The charts of this suite have other values than those of the example.
	hellos.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	ground.Define(ctx, hellos, harness.Definition(note), harness.Definition(letter))
})

// house is a manager in the test's own process, as a Go program has it.
type house struct {
	*ensign.Manager

	namespace string
	log       *lines
	registry  *prometheus.Registry
	stop      context.CancelFunc
	ended     chan struct{}
	err       error // Of Start, once ended is closed.
}

// lines are what a logger was given.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, line)
	}, funcr.Options{})
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

// settings are those of a manager in a namespace and a directory of its own.
func settings(ctx context.Context, files map[string]string) (ctrl.Options, ensign.Options, *house) {
	GinkgoHelper()
	s := ground.Site(ctx, files)
	h := &house{namespace: s.Namespace, log: &lines{}, registry: prometheus.NewPedanticRegistry(), ended: make(chan struct{})}
	o := ctrl.Options{
		Scheme: scheme.Scheme, Logger: h.log.logger(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{s.Namespace: {}}},
	}
	return o, ensign.Options{
		Dir: s.Options.Project, RunDir: filepath.Join(s.Dir, "runs"), Executable: filepath.Join(ground.Root, "bin", "manager"), Registerer: h.registry, Cold: true,
	}, h
}

// roleFor is a project with a role for the kind, which writes a ConfigMap named as its CR.
func roleFor(kind schema.GroupKind) map[string]string {
	return map[string]string{
		"watches.yaml": "- group: " + kind.Group + "\n  version: v1\n  kind: " + kind.Kind + "\n  role: only\n",
		"roles/only/tasks/main.yml": `- kubernetes.core.k8s:
    definition:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "{{ ansible_operator_meta.name }}", namespace: "{{ ansible_operator_meta.namespace }}"}
      data: {text: "{{ text }}"}
`,
	}
}

// furnish gives the manager the watches of its directory.
func (h *house) furnish(ctx context.Context, o ctrl.Options, e ensign.Options) *house {
	GinkgoHelper()
	var err error
	h.Manager, err = ensign.NewManager(ground.Cluster.Config, o, e)
	Expect(err).NotTo(HaveOccurred())
	list, err := h.LoadWatches(ctx, "watches.yaml")
	Expect(err).NotTo(HaveOccurred())
	for _, w := range list {
		Expect(h.AddWatch(w)).To(Succeed())
	}
	return h
}

// start starts the manager, which is stopped with the spec.
func (h *house) start() {
	ctx, cancel := context.WithCancel(context.Background())
	h.stop = cancel
	go func() {
		defer close(h.ended)
		h.err = h.Start(ctx)
	}()
	DeferCleanup(func() {
		h.stop()
		Eventually(h.ended).Should(BeClosed())
		GinkgoWriter.Println("--- a manager's log\n" + h.log.String())
	})
}

// reconciled makes a CR and returns it when its content has succeeded.
func (h *house) reconciled(ctx context.Context, kind schema.GroupKind, name string, spec map[string]any) *unstructured.Unstructured {
	GinkgoHelper()
	cr := harness.Custom(kind, h.namespace, name, spec)
	Expect(k8s.Create(ctx, cr)).To(Succeed())
	Eventually(func(ctx context.Context) (harness.Condition, error) {
		return harness.ConditionOf(cr, "Successful"), k8s.Get(ctx, client.ObjectKeyFromObject(cr), cr)
	}).WithContext(ctx).Should(HaveField("Status", "True"))
	return cr
}
