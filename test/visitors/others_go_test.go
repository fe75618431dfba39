package visitors

import (
	"context"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

var _ = Describe("the operator in Go", Label("long"), Ordered, func() {
	var space string
	BeforeAll(func(ctx context.Context) {
		crd := definition("go")
		Expect(harness.Define(ctx, ground.Client, crd)).To(Succeed())
		_, end := operator(ctx, "go")
		space = ground.Namespace(ctx)
		DeferCleanup(func(ctx context.Context) {
			ground.Kubectl(ctx, "delete", "visitorsapps", "--all", "--namespace="+space, "--timeout="+waitTimeout.String())
			end()
			ground.Delete(ctx, crd)
			ground.Gone(ctx, crd)
		})
	})
	app := func(name string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
		object.SetGroupVersionKind(kind)
		object.SetNamespace(space)
		object.SetName(name)
		return object
	}
	// ready is the condition Ready, if it is about the generation of the resource.
	ready := func(name string) func(context.Context) string {
		return func(ctx context.Context) string {
			GinkgoHelper()
			object := app(name)
			Expect(ground.Client.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
			conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
			for _, one := range conditions {
				if c, ok := one.(map[string]any); ok && c["type"] == "Ready" && c["observedGeneration"] == object.GetGeneration() {
					return c["status"].(string) + " " + c["reason"].(string) + ": " + c["message"].(string)
				}
			}
			return ""
		}
	}

	It("leaves other owners' objects as they are, through the life of a VisitorsApp of their name", func(ctx context.Context) {
		other := app("another")
		Expect(ground.Client.Create(ctx, other)).To(Succeed())
		owners := map[string]struct {
			said string
			give func(*unstructured.Unstructured)
		}{
			"n": {"has no owner", func(*unstructured.Unstructured) {}},
			"c": {"belongs to VisitorsApp another", func(o *unstructured.Unstructured) {
				Expect(unstructured.SetNestedSlice(o.Object, []any{map[string]any{
					"apiVersion": "example.com/v1", "kind": "VisitorsApp", "name": "another", "uid": string(other.GetUID()), "controller": true,
				}}, "metadata", "ownerReferences")).To(Succeed())
			}},
			"h": {"belongs to the Helm release " + space + "/lobby", func(o *unstructured.Unstructured) {
				o.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "lobby", "meta.helm.sh/release-namespace": space})
			}},
		}
		pods := func(labels map[string]any, more map[string]any) map[string]any {
			more["replicas"], more["selector"] = int64(0), map[string]any{"matchLabels": labels}
			more["template"] = map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{map[string]any{"name": "theirs", "image": "theirs"}}}}
			return more
		}
		kinds := map[string]struct {
			of         schema.GroupVersionKind
			name, part string
			spec       func(labels map[string]any) map[string]any
		}{
			"secret": {schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "-mysql", "database", nil},
			"service": {schema.GroupVersionKind{Version: "v1", Kind: "Service"}, "-mysql", "database", func(map[string]any) map[string]any {
				return map[string]any{"ports": []any{map[string]any{"port": int64(1)}}}
			}},
			"backends": {schema.GroupVersionKind{Version: "v1", Kind: "Service"}, "-backend", "backend", func(map[string]any) map[string]any {
				return map[string]any{"ports": []any{map[string]any{"port": int64(1)}}}
			}},
			"front": {schema.GroupVersionKind{Version: "v1", Kind: "Service"}, "-frontend", "frontend", func(map[string]any) map[string]any {
				return map[string]any{"ports": []any{map[string]any{"port": int64(1)}}}
			}},
			"set": {schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, "-mysql", "database", func(l map[string]any) map[string]any {
				return pods(l, map[string]any{"serviceName": "theirs"})
			}},
			"backend":  {schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "-backend", "backend", func(l map[string]any) map[string]any { return pods(l, map[string]any{}) }},
			"frontend": {schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "-frontend", "frontend", func(l map[string]any) map[string]any { return pods(l, map[string]any{}) }},
			"claim": {schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}, "-mysql", "database", func(map[string]any) map[string]any {
				return map[string]any{"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "none", "resources": map[string]any{"requests": map[string]any{"storage": "1Mi"}}}
			}},
		}
		theirs, said := map[string]*unstructured.Unstructured{}, map[string]string{}
		for how, owner := range owners {
			for what, k := range kinds {
				name := what + "-" + how
				labels := map[string]any{"app.kubernetes.io/name": "visitors", "app.kubernetes.io/instance": name, "app.kubernetes.io/component": k.part}
				object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"labels": labels}}}
				object.SetGroupVersionKind(k.of)
				object.SetNamespace(space)
				object.SetName(name + k.name)
				if k.spec != nil {
					object.Object["spec"] = k.spec(labels)
				}
				owner.give(object)
				Expect(ground.Client.Create(ctx, object)).To(Succeed())
				theirs[name], said[name] = object, k.of.Kind+" "+space+"/"+object.GetName()+" exists and "+owner.said
			}
		}
		for name := range theirs {
			Expect(ground.Client.Create(ctx, app(name))).To(Succeed())
		}
		for name := range theirs {
			Eventually(ctx, ready(name)).Should(HavePrefix("False ObjectOfOthers: "+said[name]), name)
		}
		for name := range theirs {
			Expect(ground.Client.Delete(ctx, app(name))).To(Succeed())
		}
		for name := range theirs {
			ground.Gone(ctx, app(name))
		}
		for name, before := range theirs {
			after := &unstructured.Unstructured{}
			after.SetGroupVersionKind(before.GroupVersionKind())
			Expect(ground.Client.Get(ctx, client.ObjectKeyFromObject(before), after)).To(Succeed(), name)
			Expect(after.GetDeletionTimestamp()).To(BeNil(), name)
			Expect(cmp.Diff(theirOwn(before), theirOwn(after))).To(BeEmpty(), name)
		}
		ground.Delete(ctx, other)
	})

	It("says what it could not apply, and goes on once the Secret is restored", func(ctx context.Context) {
		lobby := app("lobby")
		Expect(ground.Client.Create(ctx, lobby)).To(Succeed())
		Eventually(ctx, ready("lobby")).Should(HavePrefix("True Ready"))
		ground.Kubectl(ctx, "delete", "secret", "lobby-mysql", "--namespace="+space)
		ground.Kubectl(ctx, "patch", "visitorsapp", "lobby", "--namespace="+space, "--type=merge", `--patch={"spec": {"size": 3}}`)
		Eventually(ctx, ready("lobby")).Should(HavePrefix("False SecretLost: Secret " + space + "/lobby-mysql is gone"))
		ground.Kubectl(ctx, "create", "secret", "generic", "lobby-mysql", "--namespace="+space, "--from-literal=password=1", "--from-literal=root-password=2")
		Eventually(ctx, ready("lobby")).Should(HavePrefix("True Ready"))
		Expect(ground.Kubectl(ctx, "get", "deployment", "lobby-backend", "--namespace="+space, "--output=jsonpath={.spec.replicas}")).To(Equal("3"))
		By("the end, after which the restored Secret is whose it was")
		ground.Kubectl(ctx, "delete", "visitorsapp", "lobby", "--namespace="+space, "--timeout="+waitTimeout.String())
		Eventually(ctx, func() []string {
			return strings.Fields(ground.Kubectl(ctx, "get", "statefulsets,deployments,services,secrets,persistentvolumeclaims", "--namespace="+space, "--output=name", "--selector=app.kubernetes.io/instance=lobby"))
		}).Should(BeEmpty())
		ground.Kubectl(ctx, "get", "secret", "lobby-mysql", "--namespace="+space)
	})
})

// theirOwn is what nobody else may change of an object. Kubernetes adds annotations and a status.
func theirOwn(object *unstructured.Unstructured) []any {
	return []any{object.GetUID(), object.GetLabels(), object.GetOwnerReferences(), object.Object["spec"], object.Object["data"]}
}
