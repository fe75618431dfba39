package fire

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/harness"
)

const watchesFile = `
- {group: fire.ensign.io, version: v1, kind: Spark, playbook: play.yml}
- {group: fire.ensign.io, version: v1, kind: Ash, playbook: play.yml}
- group: fire.ensign.io
  version: v1
  kind: Flame
  playbook: play.yml
  finalizer: {name: fire.ensign.io/finalizer, vars: {finalizing: true}}
`

// bench is a manager whose API server can be set on fire.
type bench struct {
	*harness.Manager
	proxy     *apiproxy.Proxy
	namespace string
	dir       string
}

// newBench starts a manager with a namespace and a proxy of its own.
func newBench(ctx context.Context) *bench {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "fire-"}}
	Expect(k8s.Create(ctx, namespace)).To(Succeed())
	b := &bench{namespace: namespace.Name, dir: shortDir()}
	for name, content := range map[string]string{"project/watches.yaml": watchesFile, "project/play.yml": "- hosts: localhost\n", "gates/always": ""} {
		path := filepath.Join(b.dir, name)
		Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
		Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	}
	var err error
	b.proxy, err = apiproxy.Start(cluster.Config)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(b.proxy.Close()).To(Succeed()) })
	kubeconfig := filepath.Join(b.dir, "kubeconfig")
	Expect(b.proxy.WriteKubeconfig(kubeconfig)).To(Succeed())
	b.Manager, err = harness.Start(harness.Options{
		Binary: filepath.Join(root, "bin", "manager"), Project: filepath.Join(b.dir, "project"), Kubeconfig: kubeconfig,
		Home: filepath.Join(b.dir, "home"), Namespace: b.namespace, Copy: GinkgoWriter,
		Args: []string{"--max-concurrent-runs=8", "--max-concurrent-reconciles=8"},
		Env:  []string{"VIRTUAL_ENV=" + b.environment(), journalVariable + "=" + b.journalFile(), gatesVariable + "=" + filepath.Join(b.dir, "gates")},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(b.Stop()).To(Succeed()) })
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	Expect(b.Ready(limited, flame.Kind, spark.Kind, ash.Kind)).To(Succeed())
	return b
}

// environment is a Python environment whose programs are this test.
func (b *bench) environment() string {
	GinkgoHelper()
	dir := filepath.Join(b.dir, "venv")
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	Expect(os.MkdirAll(filepath.Join(dir, "bin"), 0o700)).To(Succeed())
	for _, name := range []string{"python3", "ansible-runner", "ansible-playbook"} {
		Expect(os.Symlink(self, filepath.Join(dir, "bin", name))).To(Succeed())
	}
	return dir
}

func shortDir() string {
	GinkgoHelper()
	dir, err := os.MkdirTemp("/tmp", "fi-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(os.RemoveAll(dir)).To(Succeed()) })
	return dir
}

func (b *bench) journalFile() string { return filepath.Join(b.dir, "journal") }

// open lets the runs go on that wait for the gate.
func (b *bench) open(gate string) {
	GinkgoHelper()
	Expect(os.WriteFile(filepath.Join(b.dir, "gates", gate), nil, 0o600)).To(Succeed())
}

// custom returns an object of the bench's namespace that has not been made yet.
func (b *bench) custom(kind schema.GroupKind, name string, spec map[string]any) *unstructured.Unstructured {
	return harness.Custom(kind, b.namespace, name, spec)
}

func (b *bench) create(ctx context.Context, kind schema.GroupKind, name string, spec map[string]any) *unstructured.Unstructured {
	GinkgoHelper()
	cr := b.custom(kind, name, spec)
	Expect(k8s.Create(ctx, cr)).To(Succeed())
	return cr
}

// runs counts the beginnings and ends of runs for an object's generation that
// were no finalizer's.
func (b *bench) runs(cr *unstructured.Unstructured, generation int64) (begun, ended int) {
	GinkgoHelper()
	journal, err := readJournal(b.journalFile())
	Expect(err).NotTo(HaveOccurred())
	for _, entry := range journal {
		switch {
		case entry.UID != string(cr.GetUID()) || entry.Generation != generation || entry.Finalizing:
		case entry.Ended:
			ended++
		default:
			begun++
		}
	}
	return begun, ended
}

// expectRuns waits for nothing: so often the content has run by now.
func (b *bench) expectRuns(cr *unstructured.Unstructured, generation int64, want int) {
	GinkgoHelper()
	begun, _ := b.runs(cr, generation)
	Expect(begun).To(Equal(want), "runs of generation %d of %s", generation, cr.GetName())
}

// finished waits until a run for the generation has come to its end.
func (b *bench) finished(ctx context.Context, cr *unstructured.Unstructured, generation int64) {
	GinkgoHelper()
	Eventually(ctx, func() int { _, ended := b.runs(cr, generation); return ended }).Should(Equal(1))
}

// begun waits until the run for the first generation is at work.
func (b *bench) begun(ctx context.Context, cr *unstructured.Unstructured) {
	GinkgoHelper()
	Eventually(ctx, func() int { begun, _ := b.runs(cr, 1); return begun }).Should(Equal(1))
}

// expectSuccess waits until the generation is reported as successful.
func expectSuccess(ctx context.Context, cr *unstructured.Unstructured, generation int64) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (string, error) {
		err := k8s.Get(ctx, client.ObjectKeyFromObject(cr), cr)
		c := harness.ConditionOf(cr, "Successful")
		return fmt.Sprint(c.Status, " ", c.Generation), err
	}).Should(Equal(fmt.Sprint("True ", generation)), "%s succeeds", cr.GetName())
}

// write tells the manager's writes apart by what they say; "" is none of a CR.
func write(r apiproxy.Request) string {
	body := string(r.Body)
	switch {
	case r.Group != flame.Group || r.Verb != "patch":
		return ""
	case r.Subresource == "status" && strings.Contains(body, "Running reconciliation"):
		return running
	case r.Subresource == "status":
		return result
	case strings.Contains(body, `"op":"remove"`):
		return removed
	default:
		return added
	}
}

// The manager's writes.
const (
	added   = "finalizer-added"
	running = "running"
	result  = "result"
	removed = "finalizer-removed"
)

// on matches one sort of write to one object.
func on(name, what string) func(apiproxy.Request) bool {
	return func(r apiproxy.Request) bool { return r.Name == name && write(r) == what }
}
