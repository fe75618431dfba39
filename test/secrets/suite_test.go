package secrets

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// patience is the deadline for a few runs, on machines that are busy with
// something else.
const (
	patience = 10 * time.Minute
	interval = 200 * time.Millisecond
)

var (
	ground *site.Ground
	keeper = schema.GroupKind{Group: "secrets.ensign.io", Kind: "Keeper"}
)

func TestSecrets(t *testing.T) {
	RegisterFailHandler(Fail)
	format.MaxLength = 0 // Every leak is to be seen.
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(interval)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "secrets")
}

var _ = BeforeSuite(func(ctx context.Context) {
	ground = site.Prepare(ctx, "../..", controlplane.Options{})
	ground.Define(ctx, harness.Definition(keeper))
})
