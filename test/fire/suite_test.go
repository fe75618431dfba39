package fire

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
)

// patience is the deadline for what should take seconds, on machines that are
// busy with something else.
const (
	patience = 3 * time.Minute
	interval = 50 * time.Millisecond
)

var (
	cluster *controlplane.Cluster
	k8s     client.WithWatch
	root    string // of the repository
	// A flame has a finalizer, a spark has none.
	flame = schema.GroupKind{Group: "fire.ensign.io", Kind: "Flame"}
	spark = schema.GroupKind{Group: "fire.ensign.io", Kind: "Spark"}
	// The schema of an ash refuses what a run came to.
	ash = schema.GroupKind{Group: "fire.ensign.io", Kind: "Ash"}
)

func TestMain(m *testing.M) {
	if code, played := stub(os.Args); played {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func TestFire(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(interval)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "fire")
}

var _ = BeforeSuite(func(ctx context.Context) {
	log.SetLogger(GinkgoLogr)
	var err error
	root, err = filepath.Abs("../..")
	Expect(err).NotTo(HaveOccurred())
	Expect(filepath.Join(root, "bin", "manager")).To(BeARegularFile(), "run these tests by `make test`, which builds what they need")
	cluster, err = controlplane.Start(ctx, controlplane.Options{Bin: filepath.Join(root, "bin", "controlplane"), Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	Expect(apiextensionsv1.AddToScheme(scheme.Scheme)).To(Succeed())
	k8s, err = client.NewWithWatch(cluster.Config, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	for _, kind := range []schema.GroupKind{flame, spark} {
		Expect(k8s.Create(ctx, harness.Definition(kind))).To(Succeed())
	}
	narrow := harness.Definition(ash)
	status := narrow.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	status.Properties = map[string]apiextensionsv1.JSONSchemaProps{"conditions": {
		Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: status.XPreserveUnknownFields,
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"ansibleResult": {Type: "string"}},
		}},
	}}
	narrow.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"] = status
	Expect(k8s.Create(ctx, narrow)).To(Succeed())
})
