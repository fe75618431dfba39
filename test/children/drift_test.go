package children

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("the trigger of a CR", Ordered, func() {
	var (
		p                         *operator
		all, held, refers         *unstructured.Unstructured
		near, far, workload, role map[string]any
		child, unmade             map[string]any
		gate                      string
	)
	secret := func(value string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "password"}, StringData: map[string]string{"a": value}}
	}
	BeforeAll(func(ctx context.Context) {
		p = newWideOperator(ctx, watching("watchClusterScopedResources: true, references: [{version: v1, kind: Secret, name: spec.password}]"))
		p.start(ctx)
		near, far, workload, role = p.configMap("near"), p.configMap("far"), p.deployment("workload"), clusterRole(p.Namespace)
		far["metadata"].(map[string]any)["namespace"] = "default"
		far["metadata"].(map[string]any)["name"] = p.Namespace
		child, unmade, gate = p.configMap("child"), p.configMap("unmade"), filepath.Join(p.Dir, "gate")
		all = p.custom("all", making(near, far, workload, role))
		held = p.custom("held", map[string]any{"objects": []any{child, unmade}, "hold": gate, "unmade": []any{unmade}})
		refers = p.custom("refers", map[string]any{"password": "password"})
		for _, cr := range []*unstructured.Unstructured{all, held, refers} {
			Expect(k8s.Create(ctx, cr)).To(Succeed())
		}
	})

	It("is an edit by a person during a run, once, and not an edit that the run reverts", func(ctx context.Context) {
		Eventually(ctx, field(unmade, "data", "a")).Should(Equal("1"))
		p.Watched(ctx, "configmaps")
		for _, value := range []string{"2", "3", "4"} {
			patch(ctx, child, `{"data": {"a": %q}}`, value)
		}
		Eventually(p.Ended(all)).Should(Equal(1))
		Eventually(p.Ended(refers)).Should(Equal(1))
		p.Watched(ctx, "deployments.apps", "clusterroles.rbac.authorization.k8s.io", "secrets")
		Expect(os.WriteFile(gate, nil, 0o600)).To(Succeed())
		p.Settles(held, 2)
		Expect(field(child, "data", "a")(ctx)).To(Equal("1"))
		Expect(field(unmade, "data", "a")(ctx)).To(BeEmpty())
		for _, cr := range []*unstructured.Unstructured{all, refers} {
			Expect(p.Runs(cr)()).To(Equal(1))
		}
	})

	It("is the deletion of a child, within a second", func(ctx context.Context) {
		remove(ctx, near)
		deleted := time.Now()
		Eventually(p.Runs(all)).Should(Equal(2))
		AddReportEntry("from a child's deletion to the start of the run", time.Since(deleted).String())
		Eventually(p.Ended(all)).Should(Equal(2))
		Expect(field(near, "data", "a")(ctx)).To(Equal("1"))
	})

	It("is the change of a child, in any namespace or none, and a Secret that comes", func(ctx context.Context) {
		patch(ctx, workload, `{"spec": {"replicas": 3}}`)
		patch(ctx, far, `{"data": {"a": "2"}}`)
		patch(ctx, role, `{"rules": []}`)
		Expect(k8s.Create(ctx, secret("1"))).To(Succeed())
		Eventually(ctx, field(workload, "spec", "replicas")).Should(Equal("1"))
		Eventually(ctx, field(far, "data", "a")).Should(Equal("1"))
		Eventually(ctx, field(role, "rules")).Should(ContainSubstring("pods"))
		p.Settles(refers, 2)
		p.Calms(all)
	})

	It("is nothing in another namespace that only says that it is a child", func(ctx context.Context) {
		runs := p.Calms(all)
		forged := p.configMap("forged")
		forged["metadata"].(map[string]any)["namespace"] = ground.Namespace(ctx)
		forged["metadata"].(map[string]any)["annotations"] = map[string]any{
			"operator-sdk/primary-resource": p.Namespace + "/all", "operator-sdk/primary-resource-type": "Box.children.ensign.io",
		}
		Expect(k8s.Create(ctx, &unstructured.Unstructured{Object: forged})).To(Succeed())
		for _, value := range []string{"2", "3", "4"} {
			patch(ctx, forged, `{"data": {"a": %q}}`, value)
		}
		remove(ctx, forged)
		By("seeing the changes of a true child after them")
		patch(ctx, far, `{"data": {"a": "2"}}`)
		Eventually(ctx, field(far, "data", "a")).Should(Equal("1"))
		Eventually(p.Ended(all)).Should(Equal(runs + 1))
		Consistently(p.Runs(all), site.Calm).Should(Equal(runs + 1))
	})

	It("is nothing that a run, and Kubernetes after it, make of six kinds", func(ctx context.Context) {
		volume := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "PersistentVolume", "metadata": map[string]any{"name": p.Namespace},
			"spec": map[string]any{
				"capacity": map[string]any{"storage": "1Gi"}, "accessModes": []any{"ReadWriteOnce"},
				"storageClassName": p.Namespace, "hostPath": map[string]any{"path": "/nowhere"},
			},
		}}
		Expect(k8s.Create(ctx, volume)).To(Succeed())
		claim := p.object("v1", "PersistentVolumeClaim", "claim", map[string]any{"spec": map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "storageClassName": p.Namespace, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
		}})
		deployment := p.deployment("deployment")
		job := p.object("batch/v1", "Job", "job", map[string]any{"spec": map[string]any{"template": podTemplate("job")}})
		job["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["restartPolicy"] = "Never"
		set := p.object("apps/v1", "StatefulSet", "set", map[string]any{"spec": map[string]any{
			"replicas": int64(1), "serviceName": "service", "selector": labels("matchLabels", "set"), "template": podTemplate("set"),
		}})
		service := p.object("v1", "Service", "service", map[string]any{"spec": map[string]any{
			"selector": map[string]any{"app": "deployment"}, "ports": []any{map[string]any{"port": int64(80)}},
		}})
		cr := p.custom("six", making(service, p.configMap("config"), deployment, set, job, claim))
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		Eventually(p.Ended(cr)).Should(Equal(1))
		Eventually(ctx, field(deployment, "status", "availableReplicas")).Should(Equal("1"))
		Eventually(ctx, field(set, "status", "readyReplicas")).Should(Equal("1"))
		Eventually(ctx, field(claim, "status", "phase")).Should(Equal("Bound"))
		Eventually(ctx, field(claim, "spec", "volumeName")).Should(Equal(volume.GetName()))
		Eventually(ctx, field(job, "status", "conditions")).Should(ContainSubstring("Complete"))
		Expect(field(deployment, "metadata", "annotations")(ctx)).To(ContainSubstring("deployment.kubernetes.io/revision"))
		p.Watched(ctx, "services", "configmaps", "deployments.apps", "statefulsets.apps", "jobs.batch", "persistentvolumeclaims")
		Consistently(p.Runs(cr), site.Calm).Should(Equal(1))
		condition, err := p.Condition(cr, "Successful")(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(condition.Status).To(Equal("True"), condition.Message)
	})

	It("is nothing that was so before a restart; a Secret that has changed since, and drift", func(ctx context.Context) {
		Expect(p.Stop()).To(Succeed())
		Expect(k8s.Patch(ctx, secret("2"), client.Merge)).To(Succeed())
		p.start(ctx)
		p.Watched(ctx, "configmaps", "deployments.apps", "clusterroles.rbac.authorization.k8s.io", "secrets")
		p.Settles(refers, 1)
		for _, cr := range []*unstructured.Unstructured{all, held} {
			Expect(p.Runs(cr)()).To(BeZero())
		}
		By("deleting a child")
		remove(ctx, role)
		Eventually(ctx, field(role, "rules")).Should(ContainSubstring("pods"))
		p.Settles(all, 1)
		By("deleting the CR, with which its children go")
		Expect(k8s.Delete(ctx, all)).To(Succeed())
		Eventually(ctx, field(near, "data", "a")).Should(BeEmpty())
		Eventually(ctx, field(workload, "spec", "replicas")).Should(BeEmpty())
		Consistently(p.Runs(all), site.Calm).Should(Equal(1))
	})
})
