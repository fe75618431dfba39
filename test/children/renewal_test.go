package children

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

var _ = Describe("a version of the CR's kind that is not served any more", Label("long"), func() {
	It("keeps no child alive: each way of writing renews the reference", func(ctx context.Context) {
		crate := schema.GroupKind{Group: "children.ensign.io", Kind: "Crate"}
		crates := harness.Definition(crate)
		older := *crates.Spec.Versions[0].DeepCopy()
		older.Name, older.Storage = "v1alpha1", false
		crates.Spec.Versions = append(crates.Spec.Versions, older)
		ground.Define(ctx, crates)
		namespace := ground.Namespace(ctx)
		collection := "/api/v1/namespaces/" + namespace + "/configmaps"
		configMap := func(name, value string) object {
			return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "namespace": namespace}, "data": object{"a": value}}
		}
		collected := func(ctx context.Context, name string) {
			GinkgoHelper()
			Eventually(ctx, func(ctx context.Context) bool {
				return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ConfigMap{}))
			}).Should(BeTrue(), name)
		}

		By("waiting until the garbage collector knows the kind")
		probe := newRun(ctx, crate, namespace, "probe")
		probe.do(ctx, http.MethodPost, collection, plain, configMap("probe", "1"))
		Expect(k8s.Delete(ctx, probe.cr)).To(Succeed())
		collected(ctx, "probe")

		then := newRun(ctx, crate, namespace, "cr")
		then = runOf(then.cr, "v1alpha1")
		writes := map[string]struct {
			method, contentType string
			body                any
		}{
			"put":       {http.MethodPut, plain, configMap("put", "2")},
			"applied":   {http.MethodPatch, applying, configMap("applied", "2")},
			"taken":     {http.MethodPatch, applying, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "taken"}, "data": object{"b": "2"}}},
			"merged":    {http.MethodPatch, merging, object{"data": object{"a": "2"}}},
			"strategic": {http.MethodPatch, strategic, configMap("strategic", "2")},
			"patched":   {http.MethodPatch, jsonPatch, []any{object{"op": "replace", "path": "/data/a", "value": "2"}}},
		}
		for name := range writes {
			if name == "applied" {
				then.do(ctx, http.MethodPatch, collection+"/"+name+"?fieldManager=role", applying, configMap(name, "1"))
			} else {
				then.do(ctx, http.MethodPost, collection, plain, configMap(name, "1"))
			}
		}

		now := runOf(then.cr, "v1")
		for name, write := range writes {
			path := collection + "/" + name
			if write.contentType == applying {
				path += "?fieldManager=role" // It has not created "taken", and does not force.
			}
			child := now.do(ctx, write.method, path, write.contentType, write.body)
			references, _ := now.ours(child)
			Expect(references).To(ConsistOf(now.reference()), name)
		}

		// A version that is not served answers 404, so that the garbage collector may take an owner for
		// gone while it still looks there.
		By("serving v1 alone")
		Eventually(ctx, func(ctx context.Context) error {
			served := &apiextensionsv1.CustomResourceDefinition{}
			if err := k8s.Get(ctx, client.ObjectKeyFromObject(crates), served); err != nil {
				return err
			}
			served.Spec.Versions[1].Served = false
			return k8s.Update(ctx, served)
		}).Should(Succeed())
		Eventually(ctx, func(ctx context.Context) error {
			return k8s.Get(ctx, client.ObjectKeyFromObject(then.cr), harness.Custom(crate, namespace, "cr", map[string]any{}))
		}).Should(Succeed())

		Expect(k8s.Delete(ctx, now.cr)).To(Succeed())
		for name := range writes {
			collected(ctx, name)
		}
	})
})
