package children

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const patches = http.MethodPatch

var _ = Describe("a child", func() {
	var here, there *place

	BeforeEach(func(ctx context.Context) {
		r := newRun(ctx, box, ground.Namespace(ctx), "cr")
		here, there = &place{r, r.owner.Namespace, "reference"}, &place{r, ground.Namespace(ctx), "annotations"}
	})

	It("has one reference where the role gives one too", func(ctx context.Context) {
		own := here.reference()
		own["controller"] = true
		given := func(change int) object {
			child := here.child("c", change)
			child["metadata"].(object)["ownerReferences"] = []any{own}
			return child
		}
		check := func() {
			GinkgoHelper()
			references, _ := here.ours(here.live(ctx, "c"))
			Expect(references).To(ConsistOf(own))
		}
		here.do(ctx, http.MethodPost, here.collection(), plain, given(0))
		check()
		here.do(ctx, http.MethodPut, here.path("c"), plain, given(1))
		check()
		put(ctx, here, "c", 2) // Without it.
		check()
		here.do(ctx, patches, here.path("c")+"?fieldManager=a&force=true", applying, given(3))
		check()
		applyAs("a")(ctx, here, "c", 4)
		check()
		here.do(ctx, patches, here.path("c"), strategic, object{"metadata": object{"ownerReferences": []any{object{"$patch": "delete", "uid": own["uid"]}}}})
		check()
	})

	It("is saved from a reference of the role that would delete it", func(ctx context.Context) {
		given := there.child("c", 0)
		given["metadata"].(object)["ownerReferences"] = []any{there.reference()}
		for name, write := range map[string]func(string){
			"posted":  func(string) { there.do(ctx, http.MethodPost, there.collection(), plain, given) },
			"applied": func(name string) { there.do(ctx, patches, there.path(name)+"?fieldManager=a", applying, given) },
			"put":     func(name string) { there.do(ctx, http.MethodPut, there.path(name), plain, given) },
			"patched": func(name string) {
				post(ctx, there, name)
				there.do(ctx, patches, there.path(name), jsonPatch, []any{object{"op": "add", "path": "/metadata/ownerReferences", "value": []any{there.reference()}}})
				there.do(ctx, patches, there.path(name), strategic, object{"metadata": object{"ownerReferences": []any{there.reference()}}})
			},
		} {
			given["metadata"].(object)["name"] = name
			write(name)
			there.isMarked(ctx, name)
		}
		Consistently(func(g Gomega) {
			for _, name := range []string{"posted", "applied", "put", "patched"} {
				_, err := there.find(ctx, name)
				g.Expect(err).NotTo(HaveOccurred(), "%s", name)
			}
		}).WithContext(ctx).WithTimeout(calm).Should(Succeed())
	})

	It("of a CR that is gone is its successor's, who has written it", func(ctx context.Context) {
		var saved *unstructured.Unstructured
		for i := 0; saved == nil; i++ { // The garbage collector may be faster.
			Expect(i).To(BeNumerically("<", 100))
			name, gone := fmt.Sprintf("c-%d", i), here.reference()
			gone["uid"] = string(uuid.NewUUID())
			left := here.child(name, 0)
			left["metadata"].(object)["ownerReferences"] = []any{gone}
			made := toUnstructured(left)
			Expect(k8s.Create(ctx, made)).To(Succeed())
			got := here.do(ctx, patches, here.path(name)+"?fieldManager=a", applying, here.child(name, 0))
			if got.GetUID() == made.GetUID() {
				saved = got
			}
		}
		Eventually(func() []metav1.OwnerReference { // It takes the other reference away, and leaves the child alone.
			got, err := here.find(ctx, saved.GetName())
			Expect(err).NotTo(HaveOccurred())
			return got.GetOwnerReferences()
		}).Should(ConsistOf(HaveField("UID", here.owner.UID)))
		Consistently(func() error { _, err := here.find(ctx, saved.GetName()); return err }).WithContext(ctx).WithTimeout(calm).Should(Succeed())
	})

	It("of another controller stays with that one", func(ctx context.Context) {
		theirs, owner := here.child("c", 0), foreign(ctx, here.namespace)
		owner["controller"] = true
		theirs["metadata"].(object)["ownerReferences"] = []any{owner}
		Expect(k8s.Create(ctx, toUnstructured(theirs))).To(Succeed())
		applyAs("a")(ctx, here, "c", 1)
		patching(merging, object{"metadata": object{"labels": object{"a": "b"}}})(ctx, here, "c", 1)
		Expect(here.live(ctx, "c").GetOwnerReferences()).To(HaveLen(1))
		put(ctx, here, "c", 2) // The role's own word, which takes it away.
		Expect(here.live(ctx, "c").GetOwnerReferences()).To(BeEmpty())
	})

	It("of a kind in several versions keeps its mark in each", func(ctx context.Context) {
		path := func(version, name string) string {
			return "/apis/autoscaling/" + version + "/namespaces/" + here.namespace + "/horizontalpodautoscalers" + name
		}
		scaler := func(version string, most int) object {
			return object{"apiVersion": "autoscaling/" + version, "kind": "HorizontalPodAutoscaler", "metadata": object{"name": "c"}, "spec": object{
				"maxReplicas": most, "scaleTargetRef": object{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
			}}
		}
		got := here.do(ctx, http.MethodPost, path("v2", ""), plain, scaler("v2", 2))
		references, _ := here.ours(got)
		Expect(references).To(ConsistOf(here.reference()))
		for most := 3; most <= 4; most++ {
			for _, version := range []string{"v1", "v2"} {
				got = here.do(ctx, http.MethodPut, path(version, "/c"), plain, scaler(version, most))
				references, _ = here.ours(got)
				Expect(references).To(ConsistOf(here.reference()), "PUT of %s", version)
				got = here.do(ctx, patches, path(version, "/c")+"?fieldManager=a&force=true", applying, scaler(version, most))
				references, _ = here.ours(got)
				Expect(references).To(ConsistOf(here.reference()), "apply of %s", version)
			}
		}
	})

	It("gets its name from the API server", func(ctx context.Context) {
		for range 2 {
			child := here.child("", 0)
			child["metadata"] = object{"generateName": "c-"}
			got := here.do(ctx, http.MethodPost, here.collection(), plain, child)
			here.isMarked(ctx, got.GetName())
		}
	})

	It("that is a dry run shows its owner, and is not there", func(ctx context.Context) {
		got := here.do(ctx, http.MethodPost, here.collection()+"?dryRun=All", plain, here.child("c", 0))
		references, _ := here.ours(got)
		Expect(references).To(ConsistOf(here.reference()))
		_, err := here.find(ctx, "c")
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		Expect(err).To(HaveOccurred())
	})

	It("keeps its mark whatever a patch says of its metadata as a whole", func(ctx context.Context) {
		post(ctx, here, "c")
		for _, try := range []struct {
			contentType string
			body        any
		}{
			{merging, object{"metadata": nil}},
			{strategic, object{"metadata": nil}},
			{strategic, object{"metadata": object{"$patch": "delete"}}},
			{strategic, object{"metadata": object{"$patch": "replace", "name": "c", "namespace": here.namespace}}},
			{strategic, object{"$patch": "delete"}},
			{strategic, object{"$patch": "replace", "metadata": object{"name": "c", "namespace": here.namespace}}},
			{strategic, object{"$retainKeys": []any{"metadata"}, "metadata": object{"name": "c"}}},
			{strategic, object{"$retainKeys": []any{"rules"}, "rules": []any{}}},
			{jsonPatch, []any{object{"op": "replace", "path": "/metadata", "value": object{"name": "c", "namespace": here.namespace}}}},
			{jsonPatch, []any{object{"op": "remove", "path": "/metadata"}}},
			{jsonPatch, []any{object{"op": "replace", "path": "", "value": here.child("c", 1)}}},
			{jsonPatch, []any{object{"op": "add", "path": "x/metadata/ownerReferences", "value": []any{}}}},
			{jsonPatch, []any{object{"op": "move", "from": "/metadata/ownerReferences", "path": "/metadata/finalizers"}}},
			{jsonPatch, []any{object{"op": "copy", "from": "/metadata/labels", "path": "/metadata/ownerReferences"}}},
			{jsonPatch, []any{object{"op": "replace", "path": "/metadata/labels", "value": object{}}, object{"op": "remove", "path": "/metadata/ownerReferences"}}},
			{jsonPatch, []any{object{"op": "replace", "path": ""}}},
		} {
			code, answer := here.try(ctx, patches, here.path("c"), try.contentType, try.body)
			GinkgoWriter.Printf("%s %v: %d %v\n", try.contentType, try.body, code, answer.Object["message"])
			here.isMarked(ctx, "c")
		}
	})

	It("keeps its mark where its status is written, by which kinds of Kubernetes' own take metadata too", func(ctx context.Context) {
		collection := "/apis/apps/v1/namespaces/" + here.namespace + "/deployments"
		deployment := func() object {
			labels := object{"app": "c"}
			return object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "c"}, "spec": object{
				"replicas": 0, "selector": object{"matchLabels": labels},
				"template": object{"metadata": object{"labels": labels}, "spec": object{"containers": []any{object{"name": "c", "image": "nothing"}}}},
			}}
		}
		here.do(ctx, http.MethodPost, collection, plain, deployment())
		for range 2 {
			for _, write := range []struct {
				method, query, contentType string
				body                       any
			}{
				{http.MethodPut, "", plain, deployment()},
				{patches, "", merging, without},
				{patches, "", strategic, without},
				{patches, "", jsonPatch, []any{object{"op": "remove", "path": "/metadata/ownerReferences"}}},
				{patches, "?fieldManager=a&force=true", applying, object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "c"}, "status": object{"observedGeneration": 0}}},
			} {
				got := here.do(ctx, write.method, collection+"/c/status"+write.query, write.contentType, write.body)
				references, _ := here.ours(got)
				Expect(references).To(ConsistOf(here.reference()), "%s %s", write.method, write.contentType)
			}
		}
	})

	It("is not made by posting a list", func(ctx context.Context) {
		list := object{"apiVersion": "v1", "kind": "List", "items": []any{here.child("c", 0)}}
		for path, contentType := range map[string]string{here.collection(): plain, here.path("c") + "?fieldManager=a": applying} {
			method := map[bool]string{true: http.MethodPost, false: patches}[contentType == plain]
			code, answer := here.try(ctx, method, path, contentType, list)
			Expect(code).To(Equal(http.StatusBadRequest), "%v", answer.Object)
		}
	})

	It("is not written where it may not be looked at", func(ctx context.Context) {
		rights := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: here.namespace, Name: "blind"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "patch", "update"},
		}}}
		binding := &rbacv1.RoleBinding{ObjectMeta: rights.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "blind"}, Subjects: []rbacv1.Subject{{
			APIGroup: rbacv1.GroupName, Kind: "User", Name: "blind",
		}}}
		Expect(k8s.Create(ctx, rights)).To(Succeed())
		Expect(k8s.Create(ctx, binding)).To(Succeed())
		config := rest.CopyConfig(cluster.Config)
		config.Impersonate.UserName = "blind"
		blind := runBy(startProxy(config), here.cr, "v1")
		path := "/api/v1/namespaces/" + here.namespace + "/configmaps"
		seen := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "seen"}}
		Eventually(func() int { // Once its rights are known.
			code, _ := blind.try(ctx, http.MethodPost, path, plain, seen)
			return code
		}).Should(Equal(http.StatusCreated))
		code, answer := blind.try(ctx, patches, path+"/c?fieldManager=a", applying, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "c"}})
		Expect(code).To(Equal(http.StatusForbidden))
		Expect(answer.Object["message"]).To(ContainSubstring("before it is written"))
		code, _ = blind.try(ctx, patches, path+"/seen", merging, object{"data": object{"a": "b"}}) // Which needs no look.
		Expect(code).To(Equal(http.StatusOK))
		found := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: here.namespace, Name: "c"}}
		Expect(apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(found), found))).To(BeTrue())
	})

	It("is the CR itself, which does not own itself", func(ctx context.Context) {
		Expect(k8s.Delete(ctx, here.cr)).To(Succeed())
		again := object{"apiVersion": "children.ensign.io/v1", "kind": "Box", "metadata": object{"name": "cr", "namespace": here.namespace}, "spec": object{}}
		path := "/apis/children.ensign.io/v1/namespaces/" + here.namespace + "/boxs/cr"
		got := here.do(ctx, patches, path+"?fieldManager=a", applying, again)
		Expect(got.GetOwnerReferences()).To(BeEmpty())
		Expect(got.GetUID()).NotTo(Equal(here.cr.GetUID()))
		got = here.do(ctx, patches, path+"/status?fieldManager=a", applying, object{"apiVersion": "children.ensign.io/v1", "kind": "Box", "metadata": object{"name": "cr"}, "status": object{"a": "b"}})
		Expect(got.GetOwnerReferences()).To(BeEmpty())
	})

	It("is the CR's own namespace, which stays", func(ctx context.Context) {
		got := here.do(ctx, patches, "/api/v1/namespaces/"+here.namespace+"?fieldManager=a", applying, object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": here.namespace, "labels": object{"a": "b"}}})
		Expect(got.GetOwnerReferences()).To(BeEmpty())
		Expect(got.GetAnnotations()).NotTo(HaveKey("operator-sdk/primary-resource"))
		made := here.do(ctx, http.MethodPost, "/api/v1/namespaces", plain, object{"metadata": object{"name": here.namespace + "-more"}})
		for range 2 {
			Expect(made.GetOwnerReferences()).To(BeEmpty())
			Expect(made.GetAnnotations()).To(HaveKeyWithValue("operator-sdk/primary-resource", here.namespace+"/cr"))
			made = here.do(ctx, patches, "/api/v1/namespaces/"+here.namespace+"-more?fieldManager=a", applying, object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": here.namespace + "-more"}})
		}
	})

	It("is none where nothing is stored, and most subresources are parts", func(ctx context.Context) {
		review := here.do(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", plain, object{"spec": object{"resourceAttributes": object{"verb": "get", "resource": "pods"}}})
		Expect(review.Object["status"]).To(HaveKeyWithValue("allowed", true))
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: there.namespace, Name: "a"}}
		Expect(k8s.Create(ctx, account)).To(Succeed())
		token := here.do(ctx, http.MethodPost, "/api/v1/namespaces/"+there.namespace+"/serviceaccounts/a/token", plain, object{"spec": object{}})
		Expect(token.GetAnnotations()).To(BeEmpty())
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: there.namespace, Name: "p"}, Spec: corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{Name: "c", Image: "nothing"}}}}
		Expect(k8s.Create(ctx, pod)).To(Succeed())
		here.do(ctx, http.MethodPost, "/api/v1/namespaces/"+there.namespace+"/bindings", plain, object{"apiVersion": "v1", "kind": "Binding", "metadata": object{"name": "p"}, "target": object{"kind": "Node", "name": "nowhere"}})
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		Expect(pod.Spec.NodeName).To(Equal("nowhere"))
		Expect(pod.Annotations).NotTo(HaveKey("operator-sdk/primary-resource")) // A binding's annotations become the pod's.
	})

	It("goes with a deletion of many", func(ctx context.Context) {
		post(ctx, here, "a")
		post(ctx, here, "b")
		here.do(ctx, http.MethodDelete, here.collection(), plain, object{"kind": "DeleteOptions", "apiVersion": "v1"})
		for _, name := range []string{"a", "b"} {
			Eventually(func() bool { _, err := here.find(ctx, name); return err != nil }).Should(BeTrue())
		}
	})
})
