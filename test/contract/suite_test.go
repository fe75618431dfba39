package contract

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/script"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var (
	ground *site.Ground
	k8s    client.WithWatch // an administrator's
)

func TestMain(m *testing.M) {
	script.Main(play)
	os.Exit(m.Run())
}

func TestContract(t *testing.T) {
	site.Run(t, "contract", harness.WaitTimeout, 50*time.Millisecond)
}

var _ = BeforeSuite(func(ctx context.Context) {
	ground = site.Prepare(ctx, controlplane.Options{AdmitServiceAccounts: true})
	k8s = ground.Client
})
