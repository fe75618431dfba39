//go:build node

package node

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func deploys(ctx context.Context) {
	run(ctx, "make", "deploy", "IMG="+image)
	rollOut(ctx)
	By("refusing a pod there that is not restricted")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "plain", Namespace: operatorSpace},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "plain", Image: image}}},
	}
	Expect(api.Create(ctx, pod, client.DryRunAll)).To(MatchError(apierrors.IsForbidden, "IsForbidden"), "Pod Security is to refuse it")
	pods := managers(ctx)
	Expect(pods).To(HaveLen(1))
	Expect(pods[0].Status.ContainerStatuses[0].RestartCount).To(BeZero())
}

func createsACluster(ctx context.Context) {
	kubectl(ctx, "apply", "-k", "config/samples")
	Eventually(ctx, func(g Gomega) { isSuccessful(g, cluster(ctx)) }).Should(Succeed())
	By("a claim that the provisioner made a volume for")
	claim := &corev1.PersistentVolumeClaim{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "data-" + sample + "-0"}, claim)).To(Succeed())
	Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound))
	volume := &corev1.PersistentVolume{}
	Expect(api.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume)).To(Succeed())
	Expect(volume.Annotations).To(HaveKeyWithValue("pv.kubernetes.io/provisioned-by", "ensign.local/directory"))
	By("an endpoint that says how to reach it")
	kubectl(ctx, "wait", "mysqlendpoint/mysqlendpoint-sample", "--for=condition=Published", "--timeout=2m")
	said := &corev1.ConfigMap{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "mysql-connection"}, said)).To(Succeed())
	Expect(said.Data).To(HaveKeyWithValue("host", sample+"-writer.default.svc"))
}

func letsAccountsIn(ctx context.Context) {
	Expect(asRoot(ctx, "SELECT CURRENT_USER()")).To(ContainSubstring("root@%"))
	reader, password := secret(ctx, "mysql-readers", "username"), secret(ctx, "mysql-readers", "password")
	Expect(sql(ctx, reader, password, "SELECT CURRENT_USER()")).To(ContainSubstring(reader + "@%"))
	for _, user := range []string{"root", reader} {
		_, err := sql(ctx, user, "not-the-password", "SELECT 1")
		Expect(err).To(MatchError(ContainSubstring("Access denied")), user)
	}
}

func changesThePort(ctx context.Context) {
	asRoot(ctx, "CREATE DATABASE kept; CREATE TABLE kept.kept (word TEXT); INSERT INTO kept.kept VALUES ('as it was')")
	changePort(ctx, 3307)
	Expect(asRoot(ctx, "SELECT word FROM kept.kept; SELECT @@port")).To(Equal("as it was\n3307\n"))
	By("the endpoint following")
	Eventually(ctx, func() string {
		return kubectl(ctx, "get", "configmap", "mysql-connection", "--output=jsonpath={.data.port}")
	}).Should(Equal("3307"))
}

func tellsEachTask(ctx context.Context) {
	logs := kubectl(ctx, "logs", "--namespace="+operatorSpace, "deployment/"+deployment, "--container=manager", "--tail=-1")
	Expect(logs).To(And(ContainSubstring("Work with the server"), ContainSubstring(namespace+"/"+sample)))
	for _, name := range []string{"mysql-admin", "mysql-readers"} {
		Expect(logs).NotTo(ContainSubstring(secret(ctx, name, "password")))
	}
	inside := func(args ...string) string {
		GinkgoHelper()
		return kubectl(ctx, append([]string{"exec", "--namespace=" + operatorSpace, "deployment/" + deployment, "--container=manager", "--"}, args...)...)
	}
	Expect(inside("id")).To(HavePrefix("uid=1001"))
	Expect(inside("sh", "-c", "touch /opt/ansible/written 2>&1 || echo refused")).To(ContainSubstring("refused"))
	Expect(inside("grep", "-E", "^(NoNewPrivs|Seccomp|CapEff):", "/proc/1/status")).To(And(
		MatchRegexp(`NoNewPrivs:\s1`), MatchRegexp(`Seccomp:\s2`), MatchRegexp(`CapEff:\s0+\n`)))
}

func showsOne(ctx context.Context) {
	ensign := func(args ...string) string {
		GinkgoHelper()
		return run(ctx, "go", append([]string{"run", "./cmd/ensign"}, args...)...)
	}
	Expect(ensign("reconcile", "mysqlcluster/"+sample, "--namespace="+namespace, "--wait")).To(ContainSubstring(sample + ": succeeded"))
	logs := ensign("logs", "mysqlcluster/"+sample, "--namespace="+namespace)
	Expect(logs).To(And(ContainSubstring("Work with the server"), ContainSubstring("run succeeded")))
	Expect(logs).NotTo(ContainSubstring("mysqlendpoint-sample"), "another resource has lines of its own")
	Expect(ensign("status", "mysqlcluster/"+sample)).To(MatchRegexp(sample + ` +True +Successful `))
}

func deletesACluster(ctx context.Context) {
	claim := &corev1.PersistentVolumeClaim{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "data-" + sample + "-0"}, claim)).To(Succeed())
	Expect(cluster(ctx).GetFinalizers()).To(ConsistOf("myapp.myorg.tld/cluster-finalizer"))
	kubectl(ctx, "delete", "-k", "config/samples", "--ignore-not-found", "--timeout=3m")
	By("by its finalizer's content")
	logs := kubectl(ctx, "logs", "--namespace="+operatorSpace, "--selector="+ofManagers, "--container=manager", "--tail=-1")
	Expect(logs).To(ContainSubstring("Delete its volume's claim"))
	By("with everything that it had")
	Eventually(ctx, func() string {
		return kubectl(ctx, "get", "statefulsets,pods,services,configmaps,poddisruptionbudgets,persistentvolumeclaims",
			"--namespace="+namespace, "--selector=mysql-cluster="+sample, "--output=name")
	}, time.Minute).Should(BeEmpty())
	Eventually(ctx, func() bool {
		return apierrors.IsNotFound(api.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, &corev1.PersistentVolume{}))
	}, time.Minute).Should(BeTrue())
}

func refusesToGo(ctx context.Context) {
	output, err := command(ctx, "make", "undeploy").CombinedOutput()
	Expect(err).To(HaveOccurred())
	Expect(string(output)).To(ContainSubstring("mysqlcluster"))
	Expect(cluster(ctx).GetDeletionTimestamp()).To(BeNil())
	Expect(managers(ctx)).To(HaveLen(1))
}

func leavesNothing(ctx context.Context) {
	run(ctx, "make", "undeploy")
	Eventually(ctx, func() (left []string) {
		for _, kinds := range []string{"namespaces", "customresourcedefinitions", "clusterroles,clusterrolebindings", "rolebindings,roles,serviceaccounts,leases"} {
			for name := range strings.FieldsSeq(kubectl(ctx, "get", kinds, "--all-namespaces", "--output=name")) {
				if strings.Contains(name, "/ensign-") && !strings.Contains(name, "/ensign-node") || strings.Contains(name, "myapp.myorg.tld") {
					left = append(left, name)
				}
			}
		}
		return left
	}).Should(BeEmpty())
}
