package ownership

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const (
	// patience is the deadline for what should take seconds. The garbage collector needs
	// half a minute to learn of a new kind.
	patience = 3 * time.Minute
	interval = 50 * time.Millisecond
	// calm is for how long the garbage collector must leave alone what it should.
	calm = 5 * time.Second
)

var (
	cluster *controlplane.Cluster
	k8s     client.WithWatch
	way     *proxy.Proxy
	ground  *site.Ground
	// Boxes are namespaced and served in two versions, tanks are cluster-scoped.
	box  = schema.GroupKind{Group: "own.ensign.io", Kind: "Box"}
	tank = schema.GroupKind{Group: "own.ensign.io", Kind: "Tank"}
)

func TestOwnership(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(interval)
	SetDefaultConsistentlyPollingInterval(interval)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "ownership")
}

var _ = BeforeSuite(func(ctx context.Context) {
	ground = site.Prepare(ctx, "../../..", controlplane.Options{})
	cluster, k8s = ground.Cluster, ground.Client
	boxes, tanks := harness.Definition(box), harness.Definition(tank)
	older := *boxes.Spec.Versions[0].DeepCopy()
	older.Name, older.Storage = "v1beta1", false
	boxes.Spec.Versions = append(boxes.Spec.Versions, older)
	tanks.Spec.Scope = apiextensionsv1.ClusterScoped
	ground.Define(ctx, boxes, tanks)
	way = startProxy(cluster.Config)
})

// startProxy starts a proxy that reaches the API server by config.
func startProxy(config *rest.Config) *proxy.Proxy {
	GinkgoHelper()
	p, err := proxy.New(config, proxy.Options{InjectOwnerRef: true, Logger: GinkgoLogr})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Server().Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Expect(<-done).To(Succeed())
	})
	return p
}
