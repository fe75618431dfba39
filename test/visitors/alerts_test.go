package visitors

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

var _ = It("has alerts and a dashboard of the metrics that the role posts, and of no others", func() {
	in := func(file ...string) string {
		GinkgoHelper()
		text, err := os.ReadFile(filepath.Join(append([]string{example, "ansible"}, file...)...))
		Expect(err).NotTo(HaveOccurred())
		return string(text)
	}
	metrics := func(text string) []string {
		found := regexp.MustCompile(`\bvisitors_[a-z_]+_(total|bucket|seconds|ratio)\b`).FindAllString(text, -1)
		for i := range found {
			found[i] = strings.TrimSuffix(found[i], "_bucket")
		}
		slices.Sort(found)
		return slices.Compact(found)
	}
	posted := metrics(in("roles", "visitorsapp", "tasks", "signals.yml"))
	Expect(posted).To(HaveLen(4))
	Expect(metrics(in("config", "prometheus", "rules.yaml"))).To(Equal(posted))
	Expect(metrics(in("config", "grafana", "visitors.json"))).To(Equal(posted))
})

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
