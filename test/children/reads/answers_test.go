package reads

import (
	"context"
	"net/url"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/ensign-operator/ensign/internal/readcache"
	"github.com/ensign-operator/ensign/test/harness"
)

// same says how two answers differ, but for the version of a list, which goes on with
// other kinds, and for an empty "continue".
func same(live, cached map[string]any) string {
	for _, list := range []map[string]any{live, cached} {
		if _, isList := list["items"]; isList {
			metadata := list["metadata"].(map[string]any)
			delete(metadata, "resourceVersion")
			delete(metadata, "continue")
		}
	}
	return cmp.Diff(live, cached)
}

var _ = Describe("An answer from memory", func() {
	It("is the API server's own", func(ctx context.Context) {
		r := open(cluster.Config, readcache.Options{}).grant(ctx)
		namespace := space(ctx, "own")
		fill(ctx, namespace, 3)
		labels := map[string]string{"app": "web"}
		pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "image", Args: []string{"<&>", "ü\u2028\"\\"}}},
		}}
		Expect(k8s.Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job"}, Spec: batchv1.JobSpec{Template: pod}})).To(Succeed())
		pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
		Expect(k8s.Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: labels, Annotations: map[string]string{"text": "a\nb\x00c"}},
			Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: pod},
		})).To(Succeed())
		Expect(k8s.Create(ctx, harness.Custom(widget, namespace, "numbers", map[string]any{
			"small": int64(-1), "large": int64(1) << 62, "part": 0.1, "whole": 5e20, "tiny": 1e-7, "none": nil, "empty": map[string]any{}, "list": []any{}, "yes": true,
		}))).To(Succeed())

		for _, path := range []string{
			"/api/v1/namespaces/own/configmaps", "/api/v1/namespaces/own/configmaps/one-001", "/api/v1/configmaps",
			"/apis/apps/v1/namespaces/own/deployments", "/apis/apps/v1/namespaces/own/deployments/web", "/apis/apps/v1/namespaces/own/replicasets",
			"/apis/batch/v1/namespaces/own/jobs/job", "/api/v1/namespaces/own/pods",
			"/apis/reads.ensign.io/v1/namespaces/own/widgets", "/apis/reads.ensign.io/v1/namespaces/own/widgets/numbers", "/apis/reads.ensign.io/v1/widgets",
			"/apis/reads.ensign.io/v1/namespaces/default/widgets", "/apis/reads.ensign.io/v1/namespaces/empty/widgets",
			"/api/v1/namespaces", "/api/v1/namespaces/own", "/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
			"/apis/storage.k8s.io/v1/storageclasses", "/api/v1/namespaces/own/serviceaccounts", "/api/v1/namespaces/own/services",
		} {
			r.warm(ctx, path)
			// Pods and Jobs are on the move at first.
			Eventually(func(g Gomega) {
				cached := r.get(ctx, path)
				g.Expect(cached.cached).To(BeTrue())
				g.Expect(same(live(ctx, path), cached.body)).To(BeEmpty(), path)
			}).Should(Succeed())
		}
	})

	It("warns as the API server does, and says no less of what is nowhere", func(ctx context.Context) {
		old := harness.Definition(schema.GroupKind{Group: "reads.ensign.io", Kind: "Relic"})
		old.Spec.Versions[0].Deprecated = true
		Expect(k8s.Create(ctx, old)).To(Succeed())
		path := "/apis/reads.ensign.io/v1/namespaces/default/relics"
		// A kind that is not discovered yet would be read live for a while.
		Eventually(func() any { return live(ctx, "/apis/reads.ensign.io/v1")["resources"] }).Should(ContainElement(HaveKeyWithValue("name", "relics")))
		Eventually(func() any { return live(ctx, path)["kind"] }).Should(Equal("RelicList"))
		r := open(cluster.Config, readcache.Options{}).grant(ctx)
		Expect(r.get(ctx, path).code).To(Equal(200))
		Expect(r.get(ctx, path).warnings).To(ConsistOf(ContainSubstring("deprecated")))
		r.warm(ctx, path)
		got := r.get(ctx, path)
		Expect(got.cached).To(BeTrue())
		Expect(got.warnings).To(ConsistOf(ContainSubstring("deprecated")))

		r.warm(ctx, "/api/v1/nodes")
		Expect(r.get(ctx, "/api/v1/namespaces/default/nodes").code).To(Equal(404))
	})

	It("selects as the API server does", func(ctx context.Context) {
		r := open(cluster.Config, readcache.Options{}).grant(ctx)
		namespace := space(ctx, "selected")
		fill(ctx, namespace, 12)
		Expect(k8s.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bare"}})).To(Succeed())
		path := "/api/v1/namespaces/selected/configmaps"
		r.warm(ctx, path)
		for _, selector := range []string{
			"app=one", "app==one", "app!=one", "app", "!app", "number in (1,2,30)", "number notin (1,2,30)", "number>3", "number<3", "app>1",
			"app=one,number=4", "app=one,number!=4,!other", "app=", "app in ()", "x/y=z", "kubernetes.io/metadata.name", " app = one , number in ( 3 , 4 ) ",
		} {
			query := path + "?labelSelector=" + url.QueryEscape(selector)
			Eventually(func(g Gomega) {
				cached := r.get(ctx, query)
				g.Expect(cached.cached).To(BeTrue(), selector)
				g.Expect(same(live(ctx, query), cached.body)).To(BeEmpty(), selector)
			}).Should(Succeed())
		}
		for _, wrong := range []string{"app in", "app=1=2", "number>x", "app in (1", "=", "UPPER CASE"} {
			query := path + "?labelSelector=" + url.QueryEscape(wrong)
			got := r.get(ctx, query)
			Expect(got.cached).To(BeFalse(), wrong)
			Expect(got.code).To(Or(Equal(400), Equal(200)), wrong)
			Expect(same(live(ctx, query), got.body)).To(BeEmpty(), wrong)
		}
	})

	It("carries a version from which nothing is missed", func(ctx context.Context) {
		r := open(cluster.Config, readcache.Options{}).grant(ctx)
		namespace := space(ctx, "versioned")
		fill(ctx, namespace, 2)
		path := "/api/v1/namespaces/versioned/configmaps"
		r.warm(ctx, path)
		for range 20 {
			Expect(k8s.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "more-"}})).To(Succeed())
			list := r.warm(ctx, path)
			known := len(list["items"].([]any))
			version := list["metadata"].(map[string]any)["resourceVersion"].(string)
			// What the list has not, a watch from its version tells.
			all := len(live(ctx, path)["items"].([]any))
			watched := r.program(ctx, "", cluster.Kubectl, "get", "--raw", path+"?watch=1&timeoutSeconds=1&resourceVersion="+version)
			Expect(known+strings.Count(watched, `"type":"ADDED"`)).To(BeNumerically(">=", all), "%s", watched)
		}
	})
})

var _ = Describe("A live answer", func() {
	It("is what only the API server can give", func(ctx context.Context) {
		w := open(cluster.Config, readcache.Options{})
		r := w.grant(ctx)
		namespace := space(ctx, "paged")
		fill(ctx, namespace, 25)
		path := "/api/v1/namespaces/paged/configmaps"
		r.warm(ctx, path)

		By("paging")
		seen, next := map[string]bool{}, ""
		for pages := 0; ; pages++ {
			got := r.get(ctx, path+"?limit=10&continue="+url.QueryEscape(next))
			Expect(got.cached).To(BeFalse())
			for _, item := range got.body["items"].([]any) {
				seen[item.(map[string]any)["metadata"].(map[string]any)["name"].(string)] = true
			}
			next, _ = got.body["metadata"].(map[string]any)["continue"].(string)
			if next == "" {
				Expect(pages).To(Equal(2))
				break
			}
		}
		Expect(seen).To(HaveLen(26), "with the namespace's own kube-root-ca.crt")

		By("reading what it can't know, or may not")
		for _, never := range []string{
			path + "?fieldSelector=metadata.name%3Done-001", path + "?resourceVersion=1&resourceVersionMatch=NotOlderThan", path + "/nobody",
			"/api/v1/namespaces/default/secrets", "/api/v1/namespaces/paged/configmaps/one-001?pretty=true", "/apis/apps/v1", "/version",
		} {
			for range 3 {
				Expect(r.get(ctx, never).cached).To(BeFalse(), never)
			}
		}
	})

	It("is given where the account may get, but not list", func(ctx context.Context) {
		namespace := space(ctx, "narrow")
		fill(ctx, namespace, 1)
		meta := metav1.ObjectMeta{Namespace: namespace, Name: "narrow"}
		Expect(k8s.Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}})).To(Succeed())
		Expect(k8s.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "narrow"}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "narrow"},
		})).To(Succeed())
		config := rest.CopyConfig(cluster.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "narrow"}
		w := open(config, readcache.Options{})
		r := w.grant(ctx)
		Eventually(func() int { return r.get(ctx, "/api/v1/namespaces/narrow/configmaps/one-000").code }).Should(Equal(200))
		for range 20 {
			got := r.get(ctx, "/api/v1/namespaces/narrow/configmaps/one-000")
			Expect(got.code).To(Equal(200))
			Expect(got.cached).To(BeFalse())
		}
		Expect(w.cache.Kinds()).To(BeZero())
	})

	It("is given outside of the manager's namespaces", func(ctx context.Context) {
		inside, outside := space(ctx, "inside"), space(ctx, "outside")
		fill(ctx, inside, 2)
		fill(ctx, outside, 2)
		r := open(cluster.Config, readcache.Options{Namespaces: []string{inside}}).grant(ctx)
		Expect(same(live(ctx, "/api/v1/namespaces/inside/configmaps"), r.warm(ctx, "/api/v1/namespaces/inside/configmaps"))).To(BeEmpty())
		for _, path := range []string{"/api/v1/namespaces/outside/configmaps", "/api/v1/namespaces/outside/configmaps/one-000", "/api/v1/configmaps"} {
			for range 5 {
				got := r.get(ctx, path)
				Expect(got.cached).To(BeFalse(), path)
				Expect(same(live(ctx, path), got.body)).To(BeEmpty(), path)
			}
		}
	})
})
