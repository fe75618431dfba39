package children

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const (
	interval = 20 * time.Millisecond
	// calm is for how long the garbage collector must leave alone what it should.
	calm = 5 * time.Second
)

var (
	cluster *controlplane.Cluster
	k8s     client.WithWatch
	ground  *site.Ground
	way     *proxy.Proxy
	// auditLog is where the API server writes down what it was asked for.
	auditLog string
	// Boxes are namespaced and served in two versions, tanks are cluster-scoped.
	box  = schema.GroupKind{Group: "children.ensign.io", Kind: "Box"}
	tank = schema.GroupKind{Group: "children.ensign.io", Kind: "Tank"}
)

func TestChildren(t *testing.T) {
	site.Run(t, "children", harness.WaitTimeout, interval)
}

var _ = BeforeSuite(func(ctx context.Context) {
	auditLog = filepath.Join(GinkgoT().TempDir(), "audit.jsonl")
	ground = site.Prepare(ctx, controlplane.Options{AdmitServiceAccounts: true, AuditLog: auditLog})
	cluster, k8s = ground.Cluster, ground.Client
	boxes, tanks := harness.Definition(box), harness.Definition(tank)
	older := *boxes.Spec.Versions[0].DeepCopy()
	older.Name, older.Storage = "v1beta1", false
	boxes.Spec.Versions = append(boxes.Spec.Versions, older)
	tanks.Spec.Scope = apiextensionsv1.ClusterScoped
	ground.Define(ctx, boxes, tanks)
	way = startProxy(cluster.Config)
})

// startProxy starts a proxy that reaches the API server by config.
func startProxy(config *rest.Config) *proxy.Proxy {
	GinkgoHelper()
	p, err := proxy.New(config, proxy.Options{InjectOwnerRef: true, Logger: GinkgoLogr})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Server().Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Expect(<-done).To(Succeed())
	})
	return p
}

// boxes makes the objects of the spec in one task, waits at the gate that the
// spec names, and unmakes what it names.
//
//go:embed testdata/content.yml
var boxes string

// operator is a namespace, and managers that work for its boxes, one after another.
type operator struct{ *site.Site }

// newWideOperator makes one whose managers watch all namespaces. The CRs of others have
// other labels.
func newWideOperator(ctx context.Context, watches string) *operator {
	GinkgoHelper()
	p := newOperator(ctx, watches, harness.Options{})
	p.Options.Namespace = ""
	return p
}

// newOperator makes a namespace and an operator with these watches, for that namespace.
func newOperator(ctx context.Context, watches string, options harness.Options) *operator {
	GinkgoHelper()
	p := &operator{ground.Site(ctx, map[string]string{"content.yml": boxes, "watches.yaml": watches})}
	p.Options.Env = append(p.Options.Env, options.Env...)
	p.Options.Args = append(p.Options.Args, options.Args...)
	return p
}

// watching is an entry of watches.yaml; more are further fields.
func watching(more string) string {
	return fmt.Sprintf("- {group: children.ensign.io, version: v1, kind: Box, playbook: content.yml, snakeCaseParameters: false, selector: {matchLabels: {place: \"${PLACE}\"}}, %s}\n", more)
}

// start starts the next manager.
func (p *operator) start(ctx context.Context) *operator {
	GinkgoHelper()
	p.Start(ctx, "Box")
	return p
}

func (p *operator) custom(name string, spec map[string]any) *unstructured.Unstructured {
	cr := harness.Custom(box, p.Namespace, name, spec)
	cr.SetLabels(map[string]string{"place": p.Namespace})
	return cr
}

// making is the spec of a CR that has the objects.
func making(objects ...any) map[string]any { return map[string]any{"objects": objects} }

func (p *operator) object(apiVersion, kind, name string, fields map[string]any) map[string]any {
	object := map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"namespace": p.Namespace, "name": name},
	}
	maps.Copy(object, fields)
	return object
}

func (p *operator) configMap(name string) map[string]any {
	return p.object("v1", "ConfigMap", name, map[string]any{"data": map[string]any{"a": "1"}})
}

// deployment has one replica.
func (p *operator) deployment(name string) map[string]any {
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
