package etcd

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const example = "../../examples/etcd"

var (
	ground    *site.Ground
	namespace string
)

func TestEtcd(t *testing.T) { site.Run(t, "etcd", harness.WaitTimeout, 50*time.Millisecond) }

var _ = BeforeSuite(func(ctx context.Context) {
	ground = site.Prepare(ctx, controlplane.Options{})
	files, err := filepath.Glob(example + "/config/crd/bases/*.yaml")
	Expect(err).NotTo(HaveOccurred())
	Expect(files).To(HaveLen(3))
	for _, file := range files {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		definition := &apiextensionsv1.CustomResourceDefinition{}
		Expect(yaml.UnmarshalStrict(text, definition)).To(Succeed())
		ground.Define(ctx, definition)
	}
	namespace = ground.Namespace(ctx)
})

var _ = Describe("the project", func() {
	ensign := func(ctx context.Context, args ...string) string {
		GinkgoHelper()
		command := exec.CommandContext(ctx, filepath.Join(ground.Root, "bin", "ensign"), args...)
		command.Dir = example
		output, err := command.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", output)
		return string(output)
	}

	It("is without a finding", func(ctx context.Context) {
		Expect(ensign(ctx, "check")).To(HavePrefix("0 errors, 0 warnings, 0 info, 0 silenced"))
	})

	It("has the rights that it needs, and no others", func(ctx context.Context) {
		Expect(strings.TrimSpace(ensign(ctx, "rbac", "--diff", "config/rbac"))).To(BeEmpty())
	})
})
