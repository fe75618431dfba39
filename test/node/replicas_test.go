//go:build node

package node

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leader is the name of the pod that holds the lease.
func leader(ctx context.Context) string {
	GinkgoHelper()
	leases := &coordinationv1.LeaseList{}
	Expect(api.List(ctx, leases, client.InNamespace(operatorSpace))).To(Succeed())
	Expect(leases.Items).To(HaveLen(1))
	if holder := leases.Items[0].Spec.HolderIdentity; holder != nil {
		pod, _, _ := strings.Cut(*holder, "_")
		return pod
	}
	return ""
}

// twoReplicas gives the operator a second pod for the rest of the spec, and returns the
// leader's name.
func twoReplicas(ctx context.Context) string {
	GinkgoHelper()
	kubectl(ctx, "scale", "deployment", deployment, "--namespace="+operatorSpace, "--replicas=2")
	DeferCleanup(func(ctx context.Context) {
		kubectl(ctx, "scale", "deployment", deployment, "--namespace="+operatorSpace, "--replicas=1")
		rollOut(ctx)
		Eventually(ctx, func() []corev1.Pod { return managers(ctx) }).Should(HaveLen(1))
	})
	rollOut(ctx)
	Expect(managers(ctx)).To(HaveLen(2))
	var first string
	Eventually(ctx, func() string {
		first = leader(ctx)
		return first
	}).Should(BeElementOf(managers(ctx)[0].Name, managers(ctx)[1].Name))
	return first
}

func outlivesItsLeader(ctx context.Context) {
	first := twoReplicas(ctx)
	began := time.Now()
	By("killing the manager's process, so that it does not release the lease")
	killsManager(ctx, first)
	changePort(ctx, 3309)
	Expect(leader(ctx)).NotTo(BeEmpty())
	AddReportEntry("from the leader's death to a changed port", time.Since(began).Round(time.Second).String())
	Eventually(ctx, func(g Gomega) {
		pod := &corev1.Pod{}
		g.Expect(api.Get(ctx, client.ObjectKey{Namespace: operatorSpace, Name: first}, pod)).To(Succeed())
		g.Expect(pod.Status.ContainerStatuses[0].RestartCount).To(BeNumerically(">", 0))
		g.Expect(pod.Status.ContainerStatuses[0].Ready).To(BeTrue())
	}).Should(Succeed())
}

// killsManager kills the manager's process in a pod. The container ends with it, and the
// program that kills it can end before it has said how it went.
func killsManager(ctx context.Context, pod string) {
	GinkgoHelper()
	const killed = 128 + 9
	kill := command(ctx, "kubectl", "exec", "--namespace="+operatorSpace, pod, "--container=manager", "--", "python3", "-c", killManager)
	output, err := kill.CombinedOutput()
	if err != nil {
		Expect(kill.ProcessState.ExitCode()).To(Equal(killed), "%v: %s", err, output)
	}
}

// killManager kills the first process of the container that is the manager's program.
const killManager = `
import os, glob, signal
for path in sorted(glob.glob('/proc/[0-9]*/exe'), key=lambda p: int(p.split('/')[2])):
    try:
        program = os.path.basename(os.path.realpath(path))
    except OSError:
        continue
    if program in ('manager', 'ansible-operator'):
        os.kill(int(path.split('/')[2]), signal.SIGKILL)
        break
else:
    raise SystemExit('there is no manager')
`

func outlivesADrain(ctx context.Context) {
	first := twoReplicas(ctx)
	node := strings.TrimSpace(kubectl(ctx, "get", "pod", first, "--namespace="+operatorSpace, "--output=jsonpath={.spec.nodeName}"))
	kubectl(ctx, "label", "pod", first, "--namespace="+operatorSpace, "drained=yes")
	DeferCleanup(func(ctx context.Context) { kubectl(ctx, "uncordon", node) })
	began := time.Now()
	// The one node has the other replica too: only the leader is evicted.
	kubectl(ctx, "drain", node, "--pod-selector=drained=yes", "--delete-emptydir-data", "--timeout=2m")
	Eventually(ctx, func() string { return leader(ctx) }).ShouldNot(Or(BeEmpty(), Equal(first)))
	AddReportEntry("from the drain to another leader", time.Since(began).Round(time.Second).String())
	By("a leader that works, though the node takes no pods")
	runAgain(ctx)
	kubectl(ctx, "uncordon", node)
	rollOut(ctx)
	By("another pod of the server after a drain, with its data")
	before := serverPod(ctx).UID
	kubectl(ctx, "drain", node, "--pod-selector=mysql-cluster="+sample, "--delete-emptydir-data", "--timeout=3m")
	kubectl(ctx, "uncordon", node)
	Eventually(ctx, func(g Gomega) {
		pod := serverPod(ctx)
		g.Expect(pod.UID).NotTo(Equal(before))
		g.Expect(pod.Status.ContainerStatuses).To(HaveLen(1))
		g.Expect(pod.Status.ContainerStatuses[0].Ready).To(BeTrue())
	}).Should(Succeed())
	Expect(asRoot(ctx, "SELECT word FROM kept.kept")).To(Equal("as it was\n"))
}

// serverPod reads the pod of the sample's server; the zero value while there is none.
func serverPod(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Expect(client.IgnoreNotFound(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: sample + "-0"}, pod))).To(Succeed())
	return pod
}
