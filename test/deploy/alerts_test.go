package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/dashboard"
)

// alert is a rule of a PrometheusRule.
type alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// alerts are those of config/prometheus. A field that rules do not have is an error.
func alerts() []alert {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(ground.Root, "config", "prometheus", "rules.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var rule struct {
		APIVersion, Kind string
		Metadata         map[string]any
		Spec             struct {
			Groups []struct {
				Name  string
				Rules []alert
			}
		}
	}
	Expect(yaml.UnmarshalStrict(text, &rule)).To(Succeed())
	Expect(rule.APIVersion + " " + rule.Kind).To(Equal("monitoring.coreos.com/v1 PrometheusRule"))
	Expect(rule.Spec.Groups).To(HaveLen(1))
	return rule.Spec.Groups[0].Rules
}

var _ = Describe("alerts", func() {
	It("say what is wrong, and where docs/howto-debug.md goes on", func() {
		page, err := os.ReadFile(filepath.Join(ground.Root, "docs", "howto-debug.md"))
		Expect(err).NotTo(HaveOccurred())
		Expect(len(alerts())).To(BeNumerically(">=", 5))
		for _, a := range alerts() {
			Expect(a.Labels).To(HaveKeyWithValue("severity", BeElementOf("critical", "warning", "info")), a.Alert)
			patience, err := time.ParseDuration(a.For)
			Expect(err).NotTo(HaveOccurred(), a.Alert)
			Expect(patience).To(BeNumerically(">=", 5*time.Minute), "a moment is no reason to wake anybody: %s", a.Alert)
			for _, name := range []string{"summary", "description"} {
				Expect(filled(a, name)).NotTo(Or(BeEmpty(), ContainSubstring("$")), a.Alert)
			}
			_, anchor, _ := strings.Cut(a.Annotations["runbook_url"], "/docs/howto-debug.md#")
			Expect(anchor).To(Equal(strings.ToLower(a.Alert)))
			Expect(string(page)).To(ContainSubstring("\n### "+a.Alert+"\n"), "docs/howto-debug.md has no such heading")
		}
	})
})

// filled is an annotation of an alert whose series have the labels that its expression
// groups by. A label that they do not have is an error.
func filled(a alert, annotation string) string {
	GinkgoHelper()
	labels := map[string]string{}
	if by := regexp.MustCompile(`by \(([^)]*)\)`).FindStringSubmatch(a.Expr); by != nil {
		for label := range strings.SplitSeq(by[1], ", ") {
			labels[label] = label
		}
	}
	parsed, err := template.New(a.Alert).Option("missingkey=error").Parse("{{$labels := .labels}}{{$value := 1}}" + a.Annotations[annotation])
	Expect(err).NotTo(HaveOccurred())
	var text strings.Builder
	Expect(parsed.Execute(&text, map[string]any{"labels": labels})).To(Succeed(), a.Alert)
	return text.String()
}

// expectMetrics asserts that the manager has what the alerts ask for. Prometheus gives
// the labels that tell installs apart, and managers.
func expectMetrics(text string) {
	GinkgoHelper()
	for _, a := range alerts() {
		selectors, err := dashboard.Parse(a.Expr)
		Expect(err).NotTo(HaveOccurred())
		Expect(selectors).NotTo(BeEmpty())
		for _, selector := range selectors {
			Expect(a.Expr).NotTo(MatchRegexp(`\bjob *=`), "%s is for one install", a.Alert)
			series := regexp.MustCompile(`(?m)^`+selector.Metric+`(\{.*\})? .*$`).FindAllString(text, -1)
			Expect(series).NotTo(BeEmpty(), "%s asks for %s", a.Alert, selector.Metric)
			own := slices.DeleteFunc(selector.Labels, func(label string) bool {
				return slices.Contains([]string{"cluster", "namespace", "job", "instance"}, label)
			})
			for _, label := range own {
				Expect(series).To(HaveEach(MatchRegexp(`[{,]`+label+`="`)), "%s: %s has no %s", a.Alert, selector.Metric, label)
			}
		}
	}
}
