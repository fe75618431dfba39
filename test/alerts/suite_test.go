package alerts

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/script"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var ground *site.Ground

func TestMain(m *testing.M) {
	script.Main(play)
	os.Exit(m.Run())
}

func TestAlerts(t *testing.T) {
	site.Run(t, "alerts", harness.WaitTimeout, 50*time.Millisecond)
}

func kind(name string) schema.GroupKind {
	return schema.GroupKind{Group: "alerts.example.com", Kind: name}
}

var _ = BeforeSuite(func(ctx context.Context) {
	ground = site.Prepare(ctx, controlplane.Options{AdmitServiceAccounts: true})
	ground.Define(ctx, harness.Definition(kind("Task")))
	Expect(filepath.Join(ground.Root, "bin", "tools", "promtool")).To(BeAnExistingFile(), "run these tests by `make test`, which builds what they need")
})

// play is a run. A CR's spec may say that it hangs or fails.
func play(r *script.Run) (int, error) {
	cr, err := r.Resource()
	if err != nil {
		return 0, err
	}
	if hangs, _, _ := unstructured.NestedBool(cr, "spec", "hangs"); hangs {
		time.Sleep(time.Hour) // TERM ends it.
	}
	if fails, _, _ := unstructured.NestedBool(cr, "spec", "fails"); fails {
		r.Event("runner_on_failed", map[string]any{"task": "fails", "host": "localhost", "res": map[string]any{"msg": "broken"}})
		r.Stats(0, 1)
		return 2, nil
	}
	return script.Succeed(r)
}
