package charts

import (
	"cmp"
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const interval = 50 * time.Millisecond

var (
	program     = flag.String("manager", "", "the manager under test, which has chart-exec beside it; by default the one in bin")
	waitTimeout = flag.Duration("wait-timeout", harness.WaitTimeout, "when specs that hang fail")
)

var (
	ground *site.Ground
	k8s    client.WithWatch
	hello  = schema.GroupKind{Group: "demo.example.com", Kind: "Hello"}
	// greeting is the kind that a role serves beside a chart.
	greeting  = schema.GroupKind{Group: "demo.example.com", Kind: "Greeting"}
	memcached = schema.GroupKind{Group: "cache.example.com", Kind: "memcached"}
	// auditLog is the API server's.
	auditLog string
)

func TestCharts(t *testing.T) {
	site.Run(t, "charts", *waitTimeout, interval)
}

var _ = BeforeSuite(func(ctx context.Context) {
	auditLog = filepath.Join(GinkgoT().TempDir(), "audit.log")
	ground = site.Prepare(ctx, controlplane.Options{AuditLog: auditLog})
	k8s = ground.Client
	Expect(filepath.Join(ground.Root, "bin", "chart-exec")).To(BeAnExistingFile(), "run these tests by `make test`, which builds what they need")
	hellos, memcacheds := &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
	read("hello/crds/hellos.yaml", hellos)
	read("memcached/crds/memcacheds.yaml", memcacheds)
	// The charts of this suite have other values than those of the example.
	hellos.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	ground.Define(ctx, hellos, memcacheds, harness.Definition(greeting), harness.Definition(rival), clusterWide(tenant), tanks())
})

// read reads a file of the examples.
func read(name string, into any) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("../../examples", name))
	Expect(err).NotTo(HaveOccurred())
	Expect(yaml.Unmarshal(text, into)).To(Succeed())
}

// rules returns the rules of a Role of the examples.
func rules(name string) []rbacv1.PolicyRule {
	GinkgoHelper()
	role := &rbacv1.Role{}
	read(name, role)
	return role.Rules
}

// newSite returns a site with the files and the manager under test.
func newSite(ctx context.Context, files map[string]string) *site.Site {
	GinkgoHelper()
	s := ground.Site(ctx, files)
	s.Options.Binary = cmp.Or(*program, s.Options.Binary)
	return s
}

// operator returns a site whose project is the example.
func operator(ctx context.Context, example string) *site.Site {
	GinkgoHelper()
	s := newSite(ctx, nil)
	Expect(os.CopyFS(s.Options.Project, os.DirFS(filepath.Join("../../examples", example)))).To(Succeed())
	return s
}
