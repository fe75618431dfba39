package leases

import (
	"context"
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
)

var (
	ground   *site.Ground
	auditLog string
	kind     = schema.GroupKind{Group: "leases.ensign.io", Kind: "Lived"}
)

func TestMain(m *testing.M) {
	script.Main(play)
	os.Exit(m.Run())
}

func TestLeases(t *testing.T) {
	site.Run(t, "leases", harness.Patience, 50*time.Millisecond)
}

var _ = BeforeSuite(func(ctx context.Context) {
	auditLog = filepath.Join(GinkgoT().TempDir(), "audit.jsonl")
	ground = site.Prepare(ctx, controlplane.Options{AuditLog: auditLog})
	ground.Define(ctx, harness.Definition(kind))
})
