package secrets

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega/format"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const interval = 200 * time.Millisecond

var (
	ground *site.Ground
	keeper = schema.GroupKind{Group: "secrets.ensign.io", Kind: "Keeper"}
)

func TestSecrets(t *testing.T) {
	format.MaxLength = 0 // Every leak is to be seen.
	site.Run(t, "secrets", harness.WaitTimeout, interval)
}

var _ = BeforeSuite(func(ctx context.Context) {
	ground = site.Prepare(ctx, controlplane.Options{})
	ground.Define(ctx, harness.Definition(keeper))
})
