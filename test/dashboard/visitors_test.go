package dashboard_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/dashboard"
)

const visitors = "../../examples/visitors/ansible/"

// posted are the series that the role of examples/visitors makes of its metrics.
func posted(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile(visitors + "roles/visitorsapp/tasks/signals.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`(?m)^    name: (visitors_\w+)\n(?:.*\n)*?    (counter|histogram):`).FindAllStringSubmatch(string(text), -1) {
		if found[2] == "histogram" {
			found[1] += "_bucket"
		}
		names = append(names, found[1])
	}
	return names
}

func TestTheVisitorsDashboardShowsWhatTheRolePosts(t *testing.T) {
	d, err := dashboard.Read(visitors + "config/grafana/visitors.json")
	if err != nil {
		t.Fatal(err)
	}
	var titles []string
	for _, panel := range d.Panels {
		titles = append(titles, panel.Title)
	}
	if want := []string{"Traffic", "Latency", "Errors", "Saturation"}; !slices.Equal(titles, want) {
		t.Errorf("panels %v", titles)
	}
	selectors, err := d.Selectors()
	if err != nil {
		t.Fatal(err)
	}
	compare(t, selectors)
}

func TestTheVisitorsAlertsAskForWhatTheRolePosts(t *testing.T) {
	text, err := os.ReadFile(visitors + "config/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rule struct {
		Spec struct {
			Groups []struct {
				Rules []struct{ Alert, Expr, For string }
			}
		}
	}
	if err := yaml.Unmarshal(text, &rule); err != nil {
		t.Fatal(err)
	}
	var selectors []dashboard.Selector
	for _, a := range rule.Spec.Groups[0].Rules {
		found, err := dashboard.Parse(a.Expr)
		if err != nil || a.For == "" || !strings.HasPrefix(a.Alert, "Visitors") {
			t.Errorf("%s, for %q: %v", a.Alert, a.For, err)
		}
		selectors = append(selectors, found...)
	}
	compare(t, selectors)
}

// compare expects that all that is posted is asked for, of a job, and nothing else.
func compare(t *testing.T, selectors []dashboard.Selector) {
	t.Helper()
	want, got := posted(t), map[string]bool{}
	for _, s := range selectors {
		got[s.Metric] = true
		if !slices.Contains(want, s.Metric) || !slices.Contains(s.Labels, "job") {
			t.Errorf("%s %v is not of the role, or of all jobs", s.Metric, s.Labels)
		}
	}
	if len(want) != 4 || len(got) != len(want) {
		t.Errorf("posted %v, asked for %v", want, got)
	}
}
