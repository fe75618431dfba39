//go:build node

package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// runsWhatWasGenerated is the story of whoever begins with init and create api: a role with a
// finalizer, a playbook and a chart, deployed by the project's own make targets. Nothing in the
// project was edited since hack/node/image.sh generated it.
func runsWhatWasGenerated(ctx context.Context) {
	state := filepath.Join(os.Getenv("NODE_WORK"), "state")
	project := func(ctx context.Context, target string) {
		GinkgoHelper()
		run(ctx, "make", "--directory="+filepath.Join(state, "shop"), target, "IMG=shop:node", "ENSIGN="+filepath.Join(state, "ensign"))
	}
	samples := filepath.Join(state, "shop", "config", "samples")
	project(ctx, "deploy")
	DeferCleanup(func(ctx context.Context) {
		kubectl(ctx, "delete", "-k", samples, "--ignore-not-found", "--timeout=2m")
		project(ctx, "undeploy")
		Expect(kubectl(ctx, "get", "namespaces,clusterroles,clusterrolebindings,customresourcedefinitions", "--output=name")).NotTo(MatchRegexp("shop-|stock[.]example[.]org"))
	})
	kubectl(ctx, "rollout", "status", "deployment/shop-manager", "--namespace=shop-system", "--timeout=4m")
	kubectl(ctx, "apply", "-k", samples)
	kinds := []string{"shelf", "till", "hello"}
	for _, kind := range kinds {
		kubectl(ctx, "wait", kind+"/"+kind+"-sample", "--for=condition=Successful", "--timeout=4m")
	}
	Expect(kubectl(ctx, "get", "configmaps", "--output=name")).To(And(ContainSubstring("configmap/shelf-sample\n"), ContainSubstring("configmap/till-sample\n")))
	Expect(kubectl(ctx, "get", "deployments", "--output=name")).To(And(ContainSubstring("/hello-sample-hello\n"), ContainSubstring("/hello-sample-greeter\n")))
	for _, kind := range kinds {
		kubectl(ctx, "delete", kind, kind+"-sample", "--timeout=2m")
	}
	Eventually(ctx, func() string {
		return kubectl(ctx, "logs", "deployment/shop-manager", "--namespace=shop-system")
	}).Should(ContainSubstring("Say what is being deleted"))
	Eventually(ctx, func() []string {
		return strings.Fields(kubectl(ctx, "get", "configmaps,deployments", "--output=name"))
	}).ShouldNot(ContainElement(MatchRegexp(`/(shelf|till|hello)-sample`)))
}
