package drift

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

	"github.com/ensign-operator/ensign/test/harness"
)

var _ = Describe("drift", func() {
	It("is repaired, of children of every scope, and after a restart", func(ctx context.Context) {
		p := newWidePlace(ctx, watching("Box", "watchClusterScopedResources: true"))
		p.start(ctx)
		near, far, workload, role := p.configMap("near"), p.configMap("far"), p.deployment("workload"), clusterRole(p.namespace)
		far["metadata"].(map[string]any)["namespace"] = "default"
		far["metadata"].(map[string]any)["name"] = p.namespace
		cr := p.custom("all", making(near, far, workload, role))
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		p.settles(cr, 1)
		p.watched(ctx, "configmaps", "deployments.apps", "clusterroles.rbac.authorization.k8s.io")

		By("deleting one, which is seen within a second")
		remove(ctx, near)
		deleted := time.Now()
		Eventually(p.runs(cr)).Should(Equal(2))
		took := time.Since(deleted)
		GinkgoWriter.Printf("from a child's deletion to the start of the run: %s\n", took)
		AddReportEntry("from a child's deletion to the start of the run", took.String())
		Eventually(p.ended(cr)).Should(Equal(2))
		Expect(field(near, "data", "a")(ctx)).To(Equal("1"))

		By("changing the others, all at once")
		patch(ctx, workload, `{"spec": {"replicas": 3}}`)
		patch(ctx, far, `{"data": {"a": "2"}}`)
		patch(ctx, role, `{"rules": []}`)
		Eventually(ctx, field(workload, "spec", "replicas")).Should(Equal("1"))
		Eventually(ctx, field(far, "data", "a")).Should(Equal("1"))
		Eventually(ctx, field(role, "rules")).Should(ContainSubstring("pods"))
		calmed := p.calms(cr)

		By("labelling one")
		patch(ctx, near, `{"metadata": {"labels": {"stray": "yes"}}}`)
		p.settles(cr, calmed+1)

		By("starting the next manager, for which the CR is settled")
		Expect(p.Stop()).To(Succeed())
		p.start(ctx)
		p.watched(ctx, "configmaps", "deployments.apps", "clusterroles.rbac.authorization.k8s.io")
		Consistently(p.runs(cr), calm).Should(BeZero())
		remove(ctx, role)
		Eventually(ctx, field(role, "rules")).Should(ContainSubstring("pods"))
		p.settles(cr, 1)

		By("deleting the CR, whose children's end runs nothing")
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, field(near, "data", "a")).Should(BeEmpty())
		Eventually(ctx, field(workload, "spec", "replicas")).Should(BeEmpty())
		Consistently(p.runs(cr), calm).Should(Equal(1))
	})

	It("is none in what a run, and Kubernetes after it, make of six kinds", func(ctx context.Context) {
		p := newPlace(ctx, watching("Box", ""), harness.Options{}).start(ctx)
		volume := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "PersistentVolume", "metadata": map[string]any{"name": p.namespace},
			"spec": map[string]any{
				"capacity": map[string]any{"storage": "1Gi"}, "accessModes": []any{"ReadWriteOnce"},
				"storageClassName": p.namespace, "hostPath": map[string]any{"path": "/nowhere"},
			},
		}}
		Expect(k8s.Create(ctx, volume)).To(Succeed())
		claim := p.object("v1", "PersistentVolumeClaim", "claim", map[string]any{"spec": map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "storageClassName": p.namespace, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
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
		Eventually(p.ended(cr)).Should(Equal(1))
		Eventually(ctx, field(deployment, "status", "availableReplicas")).Should(Equal("1"))
		Eventually(ctx, field(set, "status", "readyReplicas")).Should(Equal("1"))
		Eventually(ctx, field(claim, "status", "phase")).Should(Equal("Bound"))
		Eventually(ctx, field(claim, "spec", "volumeName")).Should(Equal(volume.GetName()))
		Eventually(ctx, field(job, "status", "conditions")).Should(ContainSubstring("Complete"))
		Expect(field(deployment, "metadata", "annotations")(ctx)).To(ContainSubstring("deployment.kubernetes.io/revision"))
		p.watched(ctx, "services", "configmaps", "deployments.apps", "statefulsets.apps", "jobs.batch", "persistentvolumeclaims")
		Consistently(p.runs(cr), calm).Should(Equal(1))
		condition, err := p.successOf(ctx, cr)
		Expect(err).NotTo(HaveOccurred())
		Expect(condition.Status).To(Equal("True"), condition.Message)
	})

	It("during a run brings exactly one more, and what the run unmakes none", func(ctx context.Context) {
		p := newPlace(ctx, watching("Box", ""), harness.Options{}).start(ctx)
		gate := filepath.Join(p.dir, "gate")
		child, unmade := p.configMap("child"), p.configMap("unmade")
		cr := p.custom("held", map[string]any{"objects": []any{child, unmade}, "hold": gate, "unmade": []any{unmade}})
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		Eventually(ctx, field(unmade, "data", "a")).Should(Equal("1"))
		p.watched(ctx, "configmaps")
		for _, value := range []string{"2", "3", "4"} {
			patch(ctx, child, `{"data": {"a": %q}}`, value)
		}
		Consistently(p.runs(cr), calm).Should(Equal(1))
		Expect(os.WriteFile(gate, nil, 0o600)).To(Succeed())
		p.settles(cr, 2)
		Expect(field(child, "data", "a")(ctx)).To(Equal("1"))
		Expect(field(unmade, "data", "a")(ctx)).To(BeEmpty())
	})
})

var _ = Describe("references", func() {
	It("bring their CR back when a Secret changes, comes, goes, and while no manager runs", func(ctx context.Context) {
		p := newPlace(ctx, watching("Box", "references: [{version: v1, kind: Secret, name: spec.password}]"), harness.Options{}).start(ctx)
		secret := func(value string) *corev1.Secret {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "password"}, StringData: map[string]string{"a": value}}
		}
		cr := p.custom("refers", map[string]any{"password": "password"})
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		p.settles(cr, 1)
		By("creating it")
		Expect(k8s.Create(ctx, secret("1"))).To(Succeed())
		Eventually(p.ended(cr)).Should(Equal(2))
		By("changing it")
		Expect(k8s.Patch(ctx, secret("2"), client.Merge)).To(Succeed())
		p.settles(cr, 3)
		By("starting the next manager, for which the CR is settled")
		Expect(p.Stop()).To(Succeed())
		p.start(ctx)
		p.watched(ctx, "secrets")
		Consistently(p.runs(cr), calm).Should(BeZero())
		By("changing it while no manager runs")
		Expect(p.Stop()).To(Succeed())
		Expect(k8s.Patch(ctx, secret("3"), client.Merge)).To(Succeed())
		p.start(ctx)
		p.settles(cr, 1)
		By("deleting it")
		Expect(k8s.Delete(ctx, secret("3"))).To(Succeed())
		p.settles(cr, 2)
	})
})

// calms waits until no run has begun for a while, and says how many there were.
func (p *place) calms(cr client.Object) int {
	GinkgoHelper()
	var runs int
	Eventually(func(g Gomega) {
		var err error
		runs, err = p.runs(cr)()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p.ended(cr)()).To(Equal(runs))
		g.Consistently(p.runs(cr), calm).Should(Equal(runs))
	}).Should(Succeed())
	return runs
}

func (p *place) successOf(ctx context.Context, cr *unstructured.Unstructured) (harness.Condition, error) {
	current := cr.DeepCopy()
	err := k8s.Get(ctx, client.ObjectKeyFromObject(cr), current)
	return harness.ConditionOf(current, "Successful"), err
}
