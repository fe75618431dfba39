package children

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const (
	plain     = "application/json"
	applying  = "application/apply-patch+yaml"
	merging   = "application/merge-patch+json"
	strategic = "application/strategic-merge-patch+json"
	jsonPatch = "application/json-patch+json"
)

type object = map[string]any

// run writes through the proxy as a run of its CR would.
type run struct {
	site.Caller

	cr    *unstructured.Unstructured
	owner access.Owner
}

// newRun makes a CR, and a grant for it.
func newRun(ctx context.Context, kind schema.GroupKind, namespace, name string) *run {
	GinkgoHelper()
	cr := harness.Custom(kind, namespace, name, map[string]any{})
	Eventually(func() error { return k8s.Create(ctx, cr) }).Should(Succeed()) // Once its kind is served.
	return runOf(cr, "v1")
}

// runOf grants a run for the CR as of a version of its kind.
func runOf(cr *unstructured.Unstructured, version string) *run {
	GinkgoHelper()
	return runBy(way, cr, version)
}

// runBy grants it by a certain proxy.
func runBy(way *proxy.Proxy, cr *unstructured.Unstructured, version string) *run {
	GinkgoHelper()
	r := &run{cr: cr, owner: access.Owner{
		GVK: cr.GroupVersionKind().GroupKind().WithVersion(version), Namespace: cr.GetNamespace(), Name: cr.GetName(), UID: cr.GetUID(),
	}}
	kubeconfig, revoke, err := way.Grant(r.owner)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(revoke)
	r.Caller, err = site.NewCaller(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	return r
}

// try sends a request and gives what comes back.
func (r *run) try(ctx context.Context, method, path, contentType string, body any) (int, *unstructured.Unstructured) {
	GinkgoHelper()
	return r.Ask(ctx, method, path, body, "Content-Type", contentType)
}

// do sends a request that succeeds, and gives the object.
func (r *run) do(ctx context.Context, method, path, contentType string, body any) *unstructured.Unstructured {
	GinkgoHelper()
	return r.Do(ctx, method, path, body, "Content-Type", contentType)
}

// reference is how a child in the owner's reach is marked.
func (r *run) reference() object {
	return object{"apiVersion": r.owner.GVK.GroupVersion().String(), "kind": r.owner.GVK.Kind, "name": r.owner.Name, "uid": string(r.owner.UID)}
}

// foreign is an owner that has nothing to do with the run; it stays.
func foreign(ctx context.Context, namespace string) object {
	GinkgoHelper()
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "foreign-"}}
	Expect(k8s.Create(ctx, other)).To(Succeed())
	return object{"apiVersion": "v1", "kind": "ConfigMap", "name": other.Name, "uid": string(other.UID)}
}

// place is where children are, and whose: a Role in a namespace, or a ClusterRole, which
// know every way of writing.
type place struct {
	*run

	namespace string // "" for cluster-scoped children
	marked    string // reference or annotations
}

func (p *place) collection() string {
	if p.namespace == "" {
		return "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	}
	return "/apis/rbac.authorization.k8s.io/v1/namespaces/" + p.namespace + "/roles"
}

func (p *place) path(name string) string { return p.collection() + "/" + name }

// child returns a child's definition as a role writes it, changed by a number.
func (p *place) child(name string, change int) object {
	kind, metadata := "Role", object{"name": name}
	if p.namespace == "" {
		kind = "ClusterRole"
	} else {
		metadata["namespace"] = p.namespace
	}
	return object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata,
		"rules": []any{object{"apiGroups": []any{""}, "resources": []any{fmt.Sprintf("things%d", change)}, "verbs": []any{"get"}}},
	}
}

// live returns the child as it stands, past the proxy.
func (p *place) live(ctx context.Context, name string) *unstructured.Unstructured {
	GinkgoHelper()
	got, err := p.find(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	return got
}

func (p *place) find(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	got := &unstructured.Unstructured{Object: p.child(name, 0)}
	err := k8s.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: name}, got)
	return got, err
}

// ours returns the references to the CR, and reports whether the annotations name it.
func (r *run) ours(child *unstructured.Unstructured) (references []any, annotated bool) {
	return site.Marks(r.cr, child)
}

// isMarked fails unless the child carries its mark, once and as it should be.
func (p *place) isMarked(ctx context.Context, name string) {
	GinkgoHelper()
	child := p.live(ctx, name)
	references, annotated := p.ours(child)
	if p.marked == "reference" {
		Expect(references).To(ConsistOf(p.reference()), "%s", name)
		Expect(annotated).To(BeFalse(), "%s", name)
		return
	}
	Expect(references).To(BeEmpty(), "%s", name)
	Expect(annotated).To(BeTrue(), "%s: %v", name, child.GetAnnotations())
}

// isFree fails if the child is marked at all.
func (p *place) isFree(ctx context.Context, name string) {
	GinkgoHelper()
	references, annotated := p.ours(p.live(ctx, name))
	Expect(references).To(BeEmpty(), "%s", name)
	Expect(annotated).To(BeFalse(), "%s", name)
}

func toUnstructured(o object) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: o}
}
