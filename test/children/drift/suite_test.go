package drift

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
)

const (
	// patience is the deadline for what should take seconds, on machines that are
	// busy with something else.
	patience = 3 * time.Minute
	interval = 20 * time.Millisecond
	// calm is for how long nothing more must come of what has settled: the informers
	// have shown it by then.
	calm = 2 * time.Second
)

var (
	cluster *controlplane.Cluster
	k8s     client.WithWatch
	root    string // of the repository
	// Boxes are namespaced, tanks are not. Both make what their spec says.
	box  = schema.GroupKind{Group: "drift.ensign.io", Kind: "Box"}
	tank = schema.GroupKind{Group: "drift.ensign.io", Kind: "Tank"}
)

func TestDrift(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(interval)
	SetDefaultConsistentlyPollingInterval(interval)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "drift")
}

var _ = BeforeSuite(func(ctx context.Context) {
	log.SetLogger(GinkgoLogr)
	var err error
	root, err = filepath.Abs("../../..")
	Expect(err).NotTo(HaveOccurred())
	for _, needed := range []string{"bin/manager", ".venv/bin/ansible-runner"} {
		Expect(filepath.Join(root, needed)).To(BeAnExistingFile(), "run these tests by `make test`, which builds what they need")
	}
	cluster, err = controlplane.Start(ctx, controlplane.Options{Bin: filepath.Join(root, "bin", "controlplane"), Log: GinkgoWriter, AdmitServiceAccounts: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	Expect(apiextensionsv1.AddToScheme(scheme.Scheme)).To(Succeed())
	k8s, err = client.NewWithWatch(cluster.Config, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	tanks := harness.Definition(tank)
	tanks.Spec.Scope = apiextensionsv1.ClusterScoped
	for _, definition := range []*apiextensionsv1.CustomResourceDefinition{harness.Definition(box), tanks} {
		Expect(k8s.Create(ctx, definition)).To(Succeed())
	}
})

// content makes the objects of the spec in one task, waits at the gate that the
// spec names, and unmakes what it names.
const content = `
- hosts: localhost
  gather_facts: false
  tasks:
  - kubernetes.core.k8s: {definition: "{{ objects }}"}
    when: objects | default([], true) | length > 0
  - ansible.builtin.wait_for: {path: "{{ hold }}", sleep: 1}
    when: hold is defined
  - kubernetes.core.k8s: {state: absent, definition: "{{ unmade }}"}
    when: unmade is defined
`

// place is a namespace, and managers that work for its boxes, one after another.
type place struct {
	namespace string
	dir       string
	options   harness.Options
	*harness.Manager
}

// newWidePlace makes one whose managers watch all namespaces. The CRs of others have
// other labels.
func newWidePlace(ctx context.Context, watches string) *place {
	GinkgoHelper()
	p := newPlace(ctx, watches, harness.Options{})
	p.options.Namespace = ""
	return p
}

// newPlace makes a namespace and an operator with these watches, for that namespace.
func newPlace(ctx context.Context, watches string, options harness.Options) *place {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "drift-"}}
	Expect(k8s.Create(ctx, namespace)).To(Succeed())
	p := &place{namespace: namespace.Name, options: options}
	var err error
	p.dir, err = os.MkdirTemp("", "drift")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, p.dir)
	// The manager's digest of the content is of everything beside the playbook.
	project := filepath.Join(p.dir, "project")
	Expect(os.Mkdir(project, 0o700)).To(Succeed())
	write := func(name, text string) {
		Expect(os.WriteFile(filepath.Join(project, name), []byte(text), 0o600)).To(Succeed())
	}
	write("content.yml", content)
	write("watches.yaml", watches)
	p.options.Namespace, p.options.Env = p.namespace, append(p.options.Env, "PLACE="+p.namespace)
	p.options.Binary, p.options.Project, p.options.Home = filepath.Join(root, "bin", "manager"), project, filepath.Join(p.dir, "home")
	if p.options.Kubeconfig == "" {
		p.options.Kubeconfig = cluster.Kubeconfig
	}
	p.options.Args = append([]string{
		"--leader-election-namespace=" + p.namespace, "--max-concurrent-reconciles=4", "--max-concurrent-runs=4", "--ansible-verbosity=0",
	}, p.options.Args...)
	return p
}

// watching is an entry of watches.yaml; more are further fields.
func watching(kind, more string) string {
	return fmt.Sprintf("- {group: drift.ensign.io, version: v1, kind: %s, playbook: content.yml, snakeCaseParameters: false, selector: {matchLabels: {place: \"${PLACE}\"}}, %s}\n", kind, more)
}

// start starts the next manager, and stops it with the spec.
func (p *place) start(ctx context.Context, kinds ...string) *place {
	GinkgoHelper()
	m, err := harness.Start(p.options)
	Expect(err).NotTo(HaveOccurred())
	p.Manager = m
	DeferCleanup(func() {
		text, err := m.Log()
		GinkgoWriter.Printf("--- the manager's log (%v)\n%s\n", err, text)
		Expect(m.Stop()).To(Succeed())
	})
	if len(kinds) == 0 {
		kinds = []string{"Box"}
	}
	Expect(m.Ready(ctx, kinds...)).To(Succeed())
	return p
}

// runs counts those that this manager has started for the CR.
func (p *place) runs(cr client.Object) func() (int, error) { return p.lines("run started", cr) }

// ended counts the runs that have ended well. None ends otherwise.
func (p *place) ended(cr client.Object) func() (int, error) {
	failed := p.lines("run failed", cr)
	ended := p.lines("run succeeded", cr)
	return func() (int, error) {
		if count, err := failed(); count > 0 {
			return 0, StopTrying("a run failed").Wrap(err)
		}
		return ended()
	}
}

func (p *place) lines(what string, cr client.Object) func() (int, error) {
	name := strings.TrimPrefix(cr.GetNamespace()+"/"+cr.GetName(), "/")
	line := regexp.MustCompile(what + `.*"cr": "` + regexp.QuoteMeta(name) + `"`)
	return func() (int, error) {
		text, err := p.Log()
		return len(line.FindAllString(text, -1)), err
	}
}

// settles waits until the CR has had so many runs of this manager, and then no more.
func (p *place) settles(cr client.Object, runs int) {
	GinkgoHelper()
	Eventually(p.ended(cr)).Should(BeNumerically(">=", runs))
	Consistently(p.runs(cr), calm).Should(Equal(runs))
}

// watched waits until the manager sees all changes of the resources.
func (p *place) watched(ctx context.Context, resources ...string) {
	GinkgoHelper()
	for _, resource := range resources {
		Eventually(ctx, p.Metrics).Should(MatchRegexp(`ansible_operator_followed_kind\{[^}]*resource="%s",state="live"\} 1`, regexp.QuoteMeta(resource)))
	}
}

// custom gives a CR with the spec.
func (p *place) custom(name string, spec map[string]any) *unstructured.Unstructured {
	cr := harness.Custom(box, p.namespace, name, spec)
	cr.SetLabels(map[string]string{"place": p.namespace})
	return cr
}

// making is the spec of a CR that has the objects.
func making(objects ...any) map[string]any { return map[string]any{"objects": objects} }

func (p *place) object(apiVersion, kind, name string, fields map[string]any) map[string]any {
	object := map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"namespace": p.namespace, "name": name},
	}
	maps.Copy(object, fields)
	return object
}

func (p *place) configMap(name string) map[string]any {
	return p.object("v1", "ConfigMap", name, map[string]any{"data": map[string]any{"a": "1"}})
}

// deployment has one replica.
func (p *place) deployment(name string) map[string]any {
	return p.object("apps/v1", "Deployment", name, map[string]any{"spec": map[string]any{
		"replicas": int64(1), "selector": labels("matchLabels", name), "template": podTemplate(name),
	}})
}

func labels(field, name string) map[string]any {
	return map[string]any{field: map[string]any{"app": name}}
}

func podTemplate(name string) map[string]any {
	return map[string]any{
		"metadata": labels("labels", name),
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "nothing"}}},
	}
}

func clusterRole(name string) map[string]any {
	return map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": name},
		"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}},
	}
}

// patch changes an object as a person would.
func patch(ctx context.Context, definition map[string]any, text string, arguments ...any) {
	GinkgoHelper()
	object := &unstructured.Unstructured{Object: definition}
	Expect(k8s.Patch(ctx, object.DeepCopy(), client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, text, arguments...)))).To(Succeed())
}

func remove(ctx context.Context, definition map[string]any) {
	GinkgoHelper()
	Expect(k8s.Delete(ctx, &unstructured.Unstructured{Object: definition})).To(Succeed())
}

// field reads a text of the object as it stands, and gives "" for an absent one.
func field(definition map[string]any, path ...string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		object := (&unstructured.Unstructured{Object: definition}).DeepCopy()
		if err := k8s.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return "", client.IgnoreNotFound(err)
		}
		value, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
		if value == nil {
			return "", err
		}
		return fmt.Sprint(value), err
	}
}
