//go:build node

package node

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// one is the operator's pod.
func one(ctx context.Context) corev1.Pod {
	GinkgoHelper()
	pods := managers(ctx)
	Expect(pods).To(HaveLen(1))
	return pods[0]
}

// exhaustMemory marks the manager's process as the one for the kernel to kill, and takes
// memory until it does: the container ends, as if the manager itself had needed too much.
const exhaustMemory = `
import os, glob
for path in glob.glob('/proc/[0-9]*/exe'):
    try:
        if os.path.basename(os.path.realpath(path)) in ('manager', 'ansible-operator'):
            open(os.path.dirname(path) + '/oom_score_adj', 'w').write('1000')
    except OSError:
        pass
taken = []
while True:
    taken.append(bytearray(16 << 20))
`

func outlivesItsMemory(ctx context.Context) {
	// Of a pod whose requests are its limits, no process is one to kill first by itself.
	patch(ctx, `{"spec":{"template":{"spec":{"containers":[{"name":"manager","resources":{
		"limits":{"cpu":"1","memory":"1280Mi"},"requests":{"cpu":"1","memory":"1280Mi"}}}]}}}}`)
	pod := one(ctx)
	restarts := pod.Status.ContainerStatuses[0].RestartCount
	// It ends with the container, one way or the other.
	output, err := command(ctx, "kubectl", "exec", "--namespace="+operatorSpace, pod.Name, "--container=manager", "--", "python3", "-c", exhaustMemory).CombinedOutput()
	Expect(err).To(HaveOccurred(), "%s", output)
	Eventually(ctx, func(g Gomega) {
		g.Expect(api.Get(ctx, client.ObjectKeyFromObject(&pod), &pod)).To(Succeed())
		status := pod.Status.ContainerStatuses[0]
		g.Expect(status.RestartCount).To(BeNumerically(">", restarts))
		g.Expect(status.LastTerminationState.Terminated).NotTo(BeNil())
		g.Expect(status.LastTerminationState.Terminated.Reason).To(Equal("OOMKilled"))
		g.Expect(status.Ready).To(BeTrue())
	}).Should(Succeed())
	changePort(ctx, 3310)
}

func outlivesItsVolume(ctx context.Context) {
	patch(ctx, `{"spec":{"template":{"spec":{"volumes":[{"name":"tmp","emptyDir":{"sizeLimit":"200Mi"}}]}}}}`)
	pod := one(ctx)
	kubectl(ctx, "exec", "--namespace="+operatorSpace, pod.Name, "--container=manager", "--", "dd", "if=/dev/zero", "of=/tmp/full", "bs=1M", "count=300")
	Eventually(ctx, func() string {
		return kubectl(ctx, "get", "events", "--namespace="+operatorSpace, "--field-selector=reason=Evicted,involvedObject.name="+pod.Name, "--output=jsonpath={.items[*].message}")
	}).Should(ContainSubstring(`"tmp"`))
	By("ending well, and another pod")
	Eventually(ctx, func(g Gomega) {
		g.Expect(api.Get(ctx, client.ObjectKeyFromObject(&pod), &pod)).To(Succeed())
		g.Expect(pod.Status.Phase).To(BeElementOf(corev1.PodFailed, corev1.PodSucceeded))
	}).Should(Succeed())
	rollOut(ctx)
	Eventually(ctx, func() []corev1.Pod { return managers(ctx) }).Should(ConsistOf(HaveField("Name", Not(Equal(pod.Name)))))
	changePort(ctx, 3311)
	kubectl(ctx, "delete", "pod", pod.Name, "--namespace="+operatorSpace, "--ignore-not-found")
}

func outlivesTheKubelet(ctx context.Context) {
	manager, server := one(ctx), serverPod(ctx)
	run(ctx, "hack/node/node.sh", "restart", "kubelet")
	changePort(ctx, 3312)
	after := one(ctx)
	Expect(after.UID).To(Equal(manager.UID))
	Expect(after.Status.ContainerStatuses[0].RestartCount).To(Equal(manager.Status.ContainerStatuses[0].RestartCount))
	Expect(serverPod(ctx).UID).NotTo(Equal(server.UID), "the server starts again for another port")
	Expect(asRoot(ctx, "SELECT word FROM kept.kept")).To(Equal("as it was\n"))
}
