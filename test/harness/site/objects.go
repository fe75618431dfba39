package site

import (
	"context"
	"os/exec"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Create creates objects.
func (g *Ground) Create(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		gomega.Expect(g.Client.Create(ctx, object)).To(gomega.Succeed())
	}
}

// Delete deletes those of the objects that are there, and waits until all are gone.
func (g *Ground) Delete(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		gomega.Expect(client.IgnoreNotFound(g.Client.Delete(ctx, object))).To(gomega.Succeed())
	}
	g.Gone(ctx, objects...)
}

// Gone waits until the objects are.
func (g *Ground) Gone(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		current, ok := object.DeepCopyObject().(client.Object)
		gomega.Expect(ok).To(gomega.BeTrue())
		gomega.Eventually(ctx, func(ctx context.Context) error {
			return g.Client.Get(ctx, client.ObjectKeyFromObject(object), current)
		}).Should(BeGone(), "%T %s stays", object, object.GetName())
	}
}

// BeGone succeeds for the error of an object that is not there.
func BeGone() types.GomegaMatcher { return gomega.MatchError(apierrors.IsNotFound, "IsNotFound") }

// Read reads an object, which has to be there.
func Read[T client.Object](ctx context.Context, g *Ground, namespace, name string, object T) T {
	ginkgo.GinkgoHelper()
	gomega.Expect(g.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)).To(gomega.Succeed())
	return object
}

// Kubectl runs kubectl, which has to succeed, and returns what it printed.
func (g *Ground) Kubectl(ctx context.Context, args ...string) string {
	ginkgo.GinkgoHelper()
	out, err := exec.CommandContext(ctx, g.Cluster.Kubectl, append([]string{"--kubeconfig=" + g.Cluster.Kubeconfig}, args...)...).CombinedOutput()
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "kubectl %v: %s", args, out)
	return string(out)
}
