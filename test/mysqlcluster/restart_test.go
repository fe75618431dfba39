package mysqlcluster

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("after an operator that was cut off while a StatefulSet was gone, another one", Label("long"), func() {
	It("completes growth and upgrades, deletes deleted clusters, and takes no image of an older series", func(ctx context.Context) {
		o := newOperator(ctx)
		o.start(ctx)
		grows, goes := o.cluster("grows"), o.cluster("goes")
		grows.Object["spec"].(map[string]any)["mysqlVersion"] = "9.7"
		o.Create(ctx, grows, goes)
		o.succeeds(ctx, grows)
		o.succeeds(ctx, goes)
		grown, left := partsOf(ctx, grows), partsOf(ctx, goes)

		By("killing the operator when it has deleted the StatefulSet of one")
		sets, err := k8s.Watch(ctx, &appsv1.StatefulSetList{}, client.InNamespace(o.Namespace))
		Expect(err).NotTo(HaveOccurred())
		Expect(change(ctx, grows, `{"size": "2Gi"}`)).To(Succeed())
		Eventually(ctx, sets.ResultChan()).Should(Receive(HaveField("Type", watch.Deleted)))
		Expect(o.Kill()).To(Succeed())
		sets.Stop()
		ground.Gone(ctx, grown.set)

		By("leaving the pod of the other alone, and deleting its cluster")
		Expect(k8s.Delete(ctx, left.set, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		ground.Gone(ctx, left.set)
		Expect(k8s.Delete(ctx, goes)).To(Succeed())
		Expect(site.Read(ctx, ground, o.Namespace, "goes-0", left.pod).DeletionTimestamp).To(BeNil())

		o.start(ctx)
		o.succeeds(ctx, grows)
		after := partsOf(ctx, grows)
		Expect(after.sizes()).To(HaveEach("2Gi"))
		Expect(after.pod.UID).To(Equal(grown.pod.UID))
		Expect(metav1.IsControlledBy(after.pod, after.set)).To(BeTrue())
		ground.Gone(ctx, goes, left.pod, left.claim)

		By("killing it when it has stopped the server of one, for an upgrade")
		sets, err = k8s.Watch(ctx, &appsv1.StatefulSetList{}, client.InNamespace(o.Namespace))
		Expect(err).NotTo(HaveOccurred())
		Expect(change(ctx, grows, `{"mysqlVersion": "10.0"}`)).To(Succeed())
		Eventually(ctx, sets.ResultChan()).Should(Receive(HaveField("Object.Spec.Replicas", HaveValue(BeZero()))))
		Expect(o.Kill()).To(Succeed())
		sets.Stop()
		o.start(ctx)
		Eventually(ctx, o.Condition(grows, "Upgrading")).Should(HaveField("Reason", "Finished"))
		o.succeeds(ctx, grows)
		upgraded := partsOf(ctx, grows)
		Expect(upgraded.set.Spec.Template.Spec.Containers[0].Image).To(Equal("mysql:10.0"))
		Expect(upgraded.set.Annotations).To(HaveKeyWithValue("myapp.myorg.tld/data-directory", "mysql-10.0"))
		Expect(upgraded.claim.Annotations).To(HaveKeyWithValue("myapp.myorg.tld/data-directory", "mysql-10.0"))

		By("naming an image in the operator's environment, which the schema does not see")
		Expect(o.Stop()).To(Succeed())
		o.Options.Env = append(o.Options.Env, "RELATED_IMAGE_MYSQL=mirror.example/mysql:8.4.9")
		o.start(ctx)
		Expect(change(ctx, grows, `{"mysqlPort": 3307}`)).To(Succeed())
		Expect(o.fails(ctx, grows)).To(ContainSubstring("has run version 10.0, and mirror.example/mysql:8.4.9 is older"))
		Expect(partsOf(ctx, grows).set.Spec.Template.Spec.Containers[0].Image).To(Equal("mysql:10.0"))
	})
})
