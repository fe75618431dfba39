package visitors

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = It("of the operator in Go says what it could not apply, and goes on once the Secret is restored", Label("long"), func(ctx context.Context) {
	runsOf(ctx, "go")
	app := lobby(ground.Namespace(ctx))
	space := "--namespace=" + app.GetNamespace()
	ready := func(generation int64, status, reason, message string) {
		GinkgoHelper()
		Eventually(ctx, conditionOf(app, "Ready")).Should(And(HaveField("Generation", generation), HaveField("Status", status),
			HaveField("Reason", reason), HaveField("Message", HavePrefix(message))))
	}
	ground.Create(ctx, app)
	ready(1, "True", "Ready", "")
	ground.Kubectl(ctx, "delete", "secret", "lobby-mysql", space)
	ground.Kubectl(ctx, "patch", "visitorsapp", "lobby", space, "--type=merge", `--patch={"spec": {"size": 3}}`)
	ready(2, "False", "SecretLost", "Secret "+app.GetNamespace()+"/lobby-mysql is gone")
	ground.Kubectl(ctx, "create", "secret", "generic", "lobby-mysql", space, "--from-literal=password=1", "--from-literal=root-password=2")
	ready(2, "True", "Ready", "")
	Expect(ground.Kubectl(ctx, "get", "deployment", "lobby-backend", space, "--output=jsonpath={.spec.replicas}")).To(Equal("3"))
	By("the end, after which the restored Secret is whose it was")
	ground.Kubectl(ctx, "delete", "visitorsapp", "lobby", space, "--timeout="+waitTimeout.String())
	Eventually(ctx, func() []string {
		return strings.Fields(ground.Kubectl(ctx, "get", "statefulsets,deployments,services,secrets,persistentvolumeclaims", space, "--output=name", "--selector=app.kubernetes.io/instance=lobby"))
	}).Should(BeEmpty())
	ground.Kubectl(ctx, "get", "secret", "lobby-mysql", space)
})
