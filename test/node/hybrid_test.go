//go:build node

package node

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// runsTheHybrid is the story of examples/hybrid/README.md, from its image on: the targets of the
// example's Makefile and kubectl, with servers of memcached that answer.
func runsTheHybrid(ctx context.Context) {
	const (
		example  = "examples/hybrid"
		samples  = example + "/config/samples"
		backup   = "memcachedbackup/memcachedbackup-sample"
		ofServer = "app.kubernetes.io/instance=memcached-sample"
		ofBackup = "cache.my.domain/backup=memcachedbackup-sample"
	)
	target := func(ctx context.Context, name string) {
		GinkgoHelper()
		run(ctx, "make", "--directory="+example, name, "IMG=hybrid:node", "ENSIGN="+filepath.Join(os.Getenv("NODE_WORK"), "state", "ensign"))
	}
	running := func(label string) []string {
		GinkgoHelper()
		names := strings.Fields(kubectl(ctx, "get", "pods", "--selector="+label, "--field-selector=status.phase=Running", "--output=jsonpath={.items[*].metadata.name}"))
		slices.Sort(names)
		return names
	}
	has := func(servers, size int) {
		GinkgoHelper()
		Eventually(ctx, func(g Gomega) {
			g.Expect(running(ofServer)).To(HaveLen(servers))
			names := running(ofBackup)
			g.Expect(names).To(HaveLen(size))
			g.Expect(strings.Fields(kubectl(ctx, "get", backup, "--output=jsonpath={.status.nodes[*]}"))).To(Equal(names))
		}).Should(Succeed())
	}
	patch := func(object, spec string) {
		GinkgoHelper()
		kubectl(ctx, "patch", object, "--type=merge", "--patch", `{"spec":`+spec+`}`)
	}

	target(ctx, "deploy")
	DeferCleanup(func(ctx context.Context) {
		kubectl(ctx, "delete", "-k", samples, "--ignore-not-found", "--timeout=2m")
		target(ctx, "undeploy")
		Expect(kubectl(ctx, "get", "namespaces,clusterroles,clusterrolebindings,customresourcedefinitions,validatingwebhookconfigurations", "--output=name")).NotTo(MatchRegexp("hybrid-|cache[.]my[.]domain"))
	})
	kubectl(ctx, "rollout", "status", "deployment/hybrid-manager", "--namespace=hybrid-system", "--timeout=4m")
	By("samples of all three kinds")
	Eventually(ctx, func() error { return command(ctx, "kubectl", "apply", "-k", samples).Run() }).Should(Succeed(), "kube-proxy may take a moment to know the webhook")
	for _, object := range []string{"memcached/memcached-sample", "memcachedclient/memcachedclient-sample"} {
		kubectl(ctx, "wait", object, "--for=condition=Successful", "--timeout=4m")
	}
	has(3, 2)
	Expect(kubectl(ctx, "get", "configmap", "memcachedclient-sample", "--output=jsonpath={.data.servers}")).To(Equal("memcached-sample.default.svc:11211"))
	kubectl(ctx, "rollout", "status", "deployment/memcached-sample", "--timeout=2m") // Ready is who answers at its port.
	By("the webhook")
	output, err := command(ctx, "kubectl", "patch", backup, "--type=merge", "--patch", `{"spec":{"size":6}}`).CombinedOutput()
	Expect(err).To(HaveOccurred())
	Expect(string(output)).To(ContainSubstring("at most 5 is allowed"))
	By("changes, and a pod of the manager that is killed in between")
	patch("memcached/memcached-sample", `{"replicaCount":2}`)
	kubectl(ctx, "delete", "pod", "--namespace=hybrid-system", "--selector=app.kubernetes.io/name=hybrid", "--grace-period=0", "--force")
	// Without a manager the webhook lets nothing through.
	Eventually(ctx, func() error {
		return command(ctx, "kubectl", "patch", backup, "--type=merge", "--patch", `{"spec":{"size":4}}`).Run()
	}).Should(Succeed())
	has(2, 4)
	By("the end")
	kubectl(ctx, "delete", "-k", samples, "--timeout=2m")
	Eventually(ctx, func() string {
		return kubectl(ctx, "get", "deployments,pods,services,configmaps,secrets", "--output=name", "--selector=app.kubernetes.io/instance=memcached-sample") +
			kubectl(ctx, "get", "deployments,configmaps", "--output=name", "--field-selector=metadata.name!=kube-root-ca.crt")
	}).ShouldNot(MatchRegexp("memcached"))
	Eventually(ctx, func() []string { return running(ofBackup) }).Should(BeEmpty())
}
