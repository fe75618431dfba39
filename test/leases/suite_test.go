package leases

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/script"
	"github.com/ensign-operator/ensign/test/harness/site"
	"github.com/ensign-operator/ensign/test/harness/trivial"
)

var (
	program     = flag.String("manager", "", "the manager under test; by default the one in bin")
	waitTimeout = flag.Duration("wait-timeout", harness.WaitTimeout, "when specs that hang fail")
)

var (
	ground   *site.Ground
	auditLog string
	kind     = schema.GroupKind{Group: "leases.ensign.io", Kind: "Lived"}
)

func TestMain(m *testing.M) {
	script.Main(play)
	trivial.Main(kind.WithVersion("v1"))
	os.Exit(m.Run())
}

func TestLeases(t *testing.T) {
	site.Run(t, "leases", *waitTimeout, 50*time.Millisecond)
}

var _ = BeforeSuite(func(ctx context.Context) {
	auditLog = filepath.Join(GinkgoT().TempDir(), "audit.jsonl")
	ground = site.Prepare(ctx, controlplane.Options{AuditLog: auditLog})
	ground.Define(ctx, harness.Definition(kind))
})
