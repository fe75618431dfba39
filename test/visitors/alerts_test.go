package visitors

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

var _ = It("fires the alerts of the sites when it should, as promtool evaluates them", func(ctx context.Context) {
	var rule struct{ Spec map[string]any }
	text, err := os.ReadFile(filepath.Join(example, "ansible", "config", "prometheus", "rules.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(yaml.Unmarshal(text, &rule)).To(Succeed())
	rules, err := yaml.Marshal(rule.Spec)
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	Expect(os.WriteFile(filepath.Join(dir, "rules.yaml"), rules, 0o600)).To(Succeed())
	situations, err := os.ReadFile(filepath.Join("testdata", "alerts.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(dir, "alerts.yaml"), situations, 0o600)).To(Succeed())
	out, err := exec.CommandContext(ctx, filepath.Join(ground.Root, "bin", "tools", "promtool"), "test", "rules", filepath.Join(dir, "alerts.yaml")).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
})
