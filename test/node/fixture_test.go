//go:build node

package node

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// runsOthers is the story of whoever builds an operator FROM the base image: a role, a
// playbook, a finalizer and a chart, a collection and a package of Python of its own, and the
// Dockerfile's last line is their content.
func runsOthers(ctx context.Context) {
	const operator = "test/node/testdata/operator/config/"
	field := func(kind, name, path string) func() string {
		return func() string {
			GinkgoHelper()
			return kubectl(ctx, "get", kind, name, "--ignore-not-found", "--output=jsonpath={"+path+"}")
		}
	}
	kubectl(ctx, "apply", "-k", operator+"crd")
	kubectl(ctx, "apply", "-k", operator+"rbac")
	kubectl(ctx, "apply", "-f", "test/node/testdata/cafe.yaml")
	DeferCleanup(func(ctx context.Context) {
		kubectl(ctx, "delete", "-k", operator+"samples", "--ignore-not-found", "--timeout=2m")
		kubectl(ctx, "delete", "-f", "test/node/testdata/cafe.yaml", "--timeout=2m")
		kubectl(ctx, "delete", "-k", operator+"rbac")
		kubectl(ctx, "delete", "-k", operator+"crd")
	})
	kubectl(ctx, "rollout", "status", "deployment/cafe-manager", "--namespace=cafe-system", "--timeout=3m")
	kubectl(ctx, "apply", "-k", operator+"samples")
	By("a role with a filter of its own collection")
	Eventually(ctx, field("configmap", "cafe-site", ".data.slug")).Should(Equal("coffee-bar"))
	By("a playbook with a module that needs a package of its own")
	Eventually(ctx, field("configmap", "lunch-menu", ".data.dishes")).Should(Equal("Pizzas, Sandwiches"))
	Eventually(ctx, field("menu", "lunch", ".status.dishes")).Should(Equal("2"))
	By("a chart")
	Eventually(ctx, field("configmap", "corner-sign", ".data.sign")).Should(Equal("Ice cream"))
	Eventually(ctx, field("kiosk", "corner", `.status.conditions[?(@.type=="Deployed")].reason`)).Should(Equal("InstallSuccessful"))
	kubectl(ctx, "delete", "kiosk", "corner", "--timeout=2m")
	Expect(field("configmap", "corner-sign", ".data.sign")()).To(BeEmpty())
	By("a finalizer")
	Eventually(ctx, field("configmap", "bookings", ".data.smith")).Should(Equal("4"))
	kubectl(ctx, "delete", "booking", "smith", "--timeout=2m")
	Expect(field("configmap", "bookings", ".data.smith")()).To(BeEmpty())
	By("children that go with their owner")
	kubectl(ctx, "delete", "site", "cafe", "--timeout=1m")
	Eventually(ctx, field("configmap", "cafe-site", ".metadata.name")).Should(BeEmpty())
}
