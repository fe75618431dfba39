package hooks

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ensign-operator/ensign/pkg/ensign"
	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const interval = 20 * time.Millisecond

var (
	ground *site.Ground
	k8s    client.WithWatch
	note   = schema.GroupKind{Group: "hooks.ensign.io", Kind: "Note"}
	kind   = note.WithVersion("v1")
)

func TestHooks(t *testing.T) { site.Run(t, "hooks", harness.WaitTimeout, interval) }

var _ = BeforeSuite(func(ctx context.Context) {
	ground = site.Prepare(ctx, controlplane.Options{})
	k8s = ground.Client
	ground.Define(ctx, harness.Definition(note))
})

// operator is a namespace with managers in it, one after another.
type operator struct {
	namespace, runDir string
	// stop ends the manager of now.
	stop func()
}

func newOperator(ctx context.Context) *operator {
	GinkgoHelper()
	o := &operator{namespace: ground.Namespace(ctx), runDir: filepath.Join(GinkgoT().TempDir(), "runs"), stop: func() {}}
	DeferCleanup(func() { o.stop() })
	return o
}

// start starts the next manager, with what add gives it.
func (o *operator) start(add func(m *ensign.Manager)) {
	GinkgoHelper()
	o.stop()
	dir, err := filepath.Abs("testdata")
	Expect(err).NotTo(HaveOccurred())
	m, err := ensign.NewManager(ground.Cluster.Config, ctrl.Options{
		Logger: GinkgoLogr, Metrics: metricsserver.Options{BindAddress: "0"}, LeaderElectionNamespace: o.namespace, LeaderElectionID: "hooks",
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{o.namespace: {}}},
	}, ensign.Options{
		Dir: dir, RunDir: o.runDir, Registerer: prometheus.NewRegistry(), Executable: filepath.Join(ground.Root, "bin", "manager"), MaxBackoff: time.Second,
		Environ: []string{"PATH=/usr/bin:/bin", "HOME=" + GinkgoT().TempDir(), "VIRTUAL_ENV=" + filepath.Join(ground.Root, ".venv")},
	})
	Expect(err).NotTo(HaveOccurred())
	add(m)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	o.stop = func() {
		GinkgoHelper()
		cancel()
		Expect(<-ended).To(Succeed())
		o.stop = func() {}
	}
}

func (o *operator) note(name, text string) *unstructured.Unstructured {
	return harness.Custom(note, o.namespace, name, map[string]any{"text": text})
}

func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(k8s.Create(ctx, object)).To(Succeed())
	}
}

// merge changes an object as a person does.
func merge(ctx context.Context, object client.Object, patch string) {
	GinkgoHelper()
	Expect(k8s.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}

// condition reads one of the CR, as "status/reason: message".
func condition(cr *unstructured.Unstructured, name string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		err := k8s.Get(ctx, client.ObjectKeyFromObject(cr), cr)
		c := harness.ConditionOf(cr, name)
		return strings.TrimSuffix(c.Status+"/"+c.Reason+": "+c.Message, ": "), err
	}
}

// data reads a key of the ConfigMap that content made for the CR; "" without one.
func (o *operator) data(name, key string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		made := &corev1.ConfigMap{}
		err := k8s.Get(ctx, client.ObjectKey{Namespace: o.namespace, Name: name}, made)
		return made.Data[key], client.IgnoreNotFound(err)
	}
}

func (o *operator) configMap(name string, values map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: name}, Data: values}
}
