package floods

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/script"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const interval = 100 * time.Millisecond

var (
	ground *site.Ground
	kind   = schema.GroupKind{Group: "floods.ensign.io", Kind: "Flood"}
)

func TestMain(m *testing.M) {
	script.Main(play)
	os.Exit(m.Run())
}

func TestFloods(t *testing.T) {
	site.Run(t, "floods", harness.WaitTimeout, interval)
}

var _ = BeforeSuite(func(ctx context.Context) {
	ground = site.Prepare(ctx, controlplane.Options{})
	ground.Define(ctx, harness.Definition(kind))
})
