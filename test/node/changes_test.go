//go:build node

package node

import (
	"context"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

// patchSample changes the sample's spec, and waits until the operator is done.
func patchSample(ctx context.Context, spec string) {
	GinkgoHelper()
	kubectl(ctx, "patch", "mysqlcluster", sample, "--type=merge", "--patch", `{"spec":`+spec+`}`)
	Eventually(ctx, func(g Gomega) {
		isSuccessful(g, cluster(ctx))
		g.Expect(harness.ConditionOf(cluster(ctx), "Upgrading").Status).NotTo(Equal("True"))
	}).Should(Succeed())
}

// keeps expects the row that changesThePort wrote.
func keeps(ctx context.Context) {
	GinkgoHelper()
	Expect(asRoot(ctx, "SELECT word FROM kept.kept")).To(Equal("as it was\n"))
}

func growsItsVolume(ctx context.Context) {
	before := serverPod(ctx)
	uptime := func() int {
		GinkgoHelper()
		fields := strings.Fields(asRoot(ctx, "SHOW GLOBAL STATUS LIKE 'Uptime'"))
		Expect(fields).To(HaveLen(2))
		seconds, err := strconv.Atoi(fields[1])
		Expect(err).NotTo(HaveOccurred())
		return seconds
	}
	was := uptime()
	patchSample(ctx, `{"size":"21Gi"}`)
	after := serverPod(ctx)
	Expect(after.UID).To(Equal(before.UID))
	Expect(after.Status.ContainerStatuses[0].RestartCount).To(Equal(before.Status.ContainerStatuses[0].RestartCount))
	Expect(uptime()).To(BeNumerically(">=", was), "the server has run all the time")
	claim := &corev1.PersistentVolumeClaim{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "data-" + sample + "-0"}, claim)).To(Succeed())
	Expect(claim.Spec.Resources.Requests.Storage().String()).To(Equal("21Gi"))
	set := &appsv1.StatefulSet{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: sample}, set)).To(Succeed())
	Expect(set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String()).To(Equal("21Gi"))
	keeps(ctx)
	output, err := command(ctx, "kubectl", "patch", "mysqlcluster", sample, "--type=merge", "--patch", `{"spec":{"size":"20Gi"}}`).CombinedOutput()
	Expect(err).To(HaveOccurred())
	Expect(string(output)).To(ContainSubstring("size can only grow"))
}

func movesToAnotherVersion(ctx context.Context) {
	before := serverPod(ctx)
	pods, err := api.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace), client.MatchingLabels{"mysql-cluster": sample})
	Expect(err).NotTo(HaveOccurred())
	seen := harness.UIDs(pods)
	patchSample(ctx, `{"mysqlVersion":"9.7"}`)
	after := serverPod(ctx)
	Expect(seen()).To(ConsistOf(before.UID, after.UID), "it restarted once")
	Expect(after.Spec.Containers[0].Image).To(Equal("mysql:9.7"))
	Expect(after.Status.ContainerStatuses[0].RestartCount).To(BeZero())
	keeps(ctx)
	output, err := command(ctx, "kubectl", "patch", "mysqlcluster", sample, "--type=merge", "--patch", `{"spec":{"mysqlVersion":"8.4"}}`).CombinedOutput()
	Expect(err).To(HaveOccurred())
	Expect(string(output)).To(ContainSubstring("the server has run version 9.7"))
}

// takesAVersionBack corrects a version of which there is no image.
func takesAVersionBack(ctx context.Context) {
	before := serverPod(ctx)
	kubectl(ctx, "patch", "mysqlcluster", sample, "--type=merge", "--patch", `{"spec":{"mysqlVersion":"99.9"}}`)
	Eventually(ctx, func() string { return harness.ConditionOf(cluster(ctx), "Failure").Message }).
		Should(And(ContainSubstring("spec.mysqlVersion: the upgrade from 9.7 to 99.9 failed"), ContainSubstring("ImagePull")))
	kubectl(ctx, "patch", "mysqlcluster", sample, "--type=merge", "--patch", `{"spec":{"mysqlVersion":"9.7"}}`)
	Eventually(ctx, func(g Gomega) { isSuccessful(g, cluster(ctx)) }).Should(Succeed())
	Expect(serverPod(ctx).UID).To(Equal(before.UID), "the server has run all the time")
	keeps(ctx)
}

func repairsWhatOthersChange(ctx context.Context) {
	readers := sample + "-readers"
	reader, password := secret(ctx, "mysql-readers", "username"), secret(ctx, "mysql-readers", "password")
	asks := func() error {
		_, err := sqlAt(ctx, readers, reader, password, "SELECT 1")
		return err
	}
	Eventually(ctx, asks).Should(Succeed())
	By("a Service that is deleted")
	kubectl(ctx, "delete", "service", readers)
	Eventually(ctx, asks).Should(Succeed())
	By("a Service that selects nothing")
	writer := sample + "-writer"
	kubectl(ctx, "patch", "service", writer, "--type=merge", "--patch", `{"spec":{"selector":{"mysql-cluster":"nobody"}}}`)
	Eventually(ctx, func() string {
		return kubectl(ctx, "get", "service", writer, "--output=jsonpath={.spec.selector.mysql-cluster}")
	}).Should(Equal(sample))
	keeps(ctx)
	By("a StatefulSet without a pod")
	kubectl(ctx, "scale", "statefulset", sample, "--replicas=0")
	runAgain(ctx)
	Expect(serverPod(ctx).Status.ContainerStatuses).To(ConsistOf(HaveField("Ready", true)))
	keeps(ctx)
}

func outlivesItsServersPod(ctx context.Context) {
	before := serverPod(ctx)
	kubectl(ctx, "delete", "pod", sample+"-0", "--force", "--grace-period=0")
	Eventually(ctx, func(g Gomega) {
		pod := serverPod(ctx)
		g.Expect(pod.UID).NotTo(Equal(before.UID))
		g.Expect(pod.Status.ContainerStatuses).To(ConsistOf(HaveField("Ready", true)))
	}).Should(Succeed())
	keeps(ctx)
}
