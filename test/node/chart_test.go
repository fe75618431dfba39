//go:build node

package node

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// installsByChart is the operator's life as a Helm release of two replicas.
func installsByChart(ctx context.Context) {
	helm := func(args ...string) {
		GinkgoHelper()
		run(ctx, "bin/tools/helm", append(args, "--namespace="+operatorSpace, "--timeout=4m")...)
	}
	kubectl(ctx, "create", "namespace", operatorSpace)
	kubectl(ctx, "label", "namespace", operatorSpace, "pod-security.kubernetes.io/enforce=restricted")
	DeferCleanup(func(ctx context.Context) {
		kubectl(ctx, "delete", "crd", "--selector=app.kubernetes.io/part-of=ensign", "--timeout=1m")
		kubectl(ctx, "delete", "namespace", operatorSpace, "--timeout=2m")
	})
	repository, tag, _ := strings.Cut(image, ":")
	helm("install", "ensign", "charts/ensign", "--wait", "--set=replicas=2,image.repository="+repository+",image.tag="+tag)
	Expect(managers(ctx)).To(HaveLen(2))
	createsACluster(ctx)

	By("an upgrade")
	helm("upgrade", "ensign", "charts/ensign", "--wait", "--reuse-values", "--set=logFormat=json")
	runAgain(ctx)
	Expect(kubectl(ctx, "logs", "--namespace="+operatorSpace, "--selector="+ofManagers, "--container=manager", "--tail=1")).To(HavePrefix("{"))

	By("an uninstall that refuses while a custom resource needs it")
	output, err := command(ctx, "bin/tools/helm", "uninstall", "ensign", "--namespace="+operatorSpace, "--timeout=2m").CombinedOutput()
	Expect(err).To(HaveOccurred())
	Expect(string(output)).To(ContainSubstring(namespace+"/"+sample), "what Helm says is to name it")
	Expect(managers(ctx)).To(HaveLen(2))

	By("an uninstall after it, which keeps the definitions")
	deletesACluster(ctx)
	helm("uninstall", "ensign", "--wait")
	Expect(managers(ctx)).To(BeEmpty())
	Expect(kubectl(ctx, "get", "crd", "--output=name")).To(ContainSubstring("mysqlclusters.myapp.myorg.tld"))
}
