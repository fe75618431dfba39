package e2e

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// patience is the deadline for what should take seconds, on machines that are
// busy with something else.
const (
	patience = 1 * time.Minute
	interval = 100 * time.Millisecond
)

var (
	cluster *controlplane.Cluster
	k8s     client.WithWatch
	root    string // of the repository
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyPollingInterval(interval)
	RunSpecs(t, "e2e")
}

var _ = BeforeSuite(func(ctx context.Context) {
	ground := site.Prepare(ctx, "../..", controlplane.Options{})
	cluster, k8s, root = ground.Cluster, ground.Client, ground.Root
	// They are served then, because some specs make objects before there is a manager that waits for kinds.
	ground.Define(ctx, definition("Note"), definition("Slow"))
})
