package alerts

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/dashboard"
)

// Rules are the groups of a PrometheusRule, as Prometheus reads them.
type Rules struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []Rule `json:"rules"`
	} `json:"groups"`
}

// Rule is an alert.
type Rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// ReadRules reads the file of a PrometheusRule. A field that rules do not have is an error.
func ReadRules(path string) (Rules, error) {
	var rule struct {
		APIVersion, Kind string
		Metadata         map[string]any
		Spec             Rules
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.UnmarshalStrict(text, &rule)
	}
	if err == nil && rule.APIVersion+" "+rule.Kind != "monitoring.coreos.com/v1 PrometheusRule" {
		err = fmt.Errorf("it is a %s of %s", rule.Kind, rule.APIVersion)
	}
	if err != nil {
		return Rules{}, fmt.Errorf("read the rules %s: %w", path, err)
	}
	return rule.Spec, nil
}

// All returns the alerts of all groups.
func (r Rules) All() (all []Rule) {
	for _, group := range r.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// metrics returns the metrics that the alerts ask for.
func (r Rules) metrics() (map[string]bool, error) {
	asked := map[string]bool{}
	for _, rule := range r.All() {
		selectors, err := dashboard.Parse(rule.Expr)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rule.Alert, err)
		}
		for _, s := range selectors {
			asked[s.Metric] = true
		}
	}
	return asked, nil
}

// Target is a manager as Prometheus knows it.
type Target struct{ Namespace, Job, Instance string }

// Scrape is what a target exported, and for how many minutes Prometheus reads that. "" is a target
// that does not answer.
type Scrape struct {
	Text    string
	Minutes int
}

// Situation is what Prometheus reads of targets, one scrape a minute, and which alerts fire at the
// end.
type Situation struct {
	Name    string
	Targets map[Target][]Scrape
	// Firing are alerts with those of their labels that are not "", as "Alert{namespace} GVK".
	Firing []string
}

// Test writes an input of promtool into the directory, and returns its path.
func (r Rules) Test(dir string, all []Situation) (string, error) {
	asked, err := r.metrics()
	if err != nil {
		return "", err
	}
	tests := make([]map[string]any, 0, len(all))
	for _, s := range all {
		tests = append(tests, s.test(asked))
	}
	errs := write(filepath.Join(dir, "rules.yaml"), r)
	if errs != nil {
		return "", errs
	}
	path := filepath.Join(dir, "test.yaml")
	return path, write(path, map[string]any{"rule_files": []string{"rules.yaml"}, "evaluation_interval": "1m", "tests": tests})
}

func write(path string, what any) error {
	text, err := yaml.Marshal(what)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// test returns the situation as promtool takes it.
func (s Situation) test(asked map[string]bool) map[string]any {
	minutes, input := 0, []map[string]any{}
	for target, scrapes := range s.Targets {
		values, at := map[string][]string{}, 0
		for _, scrape := range scrapes {
			for name, value := range series(scrape.Text, target, asked) {
				values[name] = append(pad(values[name], at), slices.Repeat([]string{value}, scrape.Minutes)...)
			}
			at += scrape.Minutes
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			input = append(input, map[string]any{"series": name, "values": strings.Join(pad(values[name], at), " ")})
		}
		minutes = max(minutes, at)
	}
	samples := make([]map[string]any, 0, len(s.Firing))
	for _, labels := range s.Firing {
		samples = append(samples, map[string]any{"labels": labels, "value": 1})
	}
	return map[string]any{
		"name": s.Name, "interval": "1m", "input_series": input,
		"promql_expr_test": []map[string]any{{
			"expr":      `group by (alertname, namespace, job, GVK, resource) (ALERTS{alertstate="firing"})`,
			"eval_time": fmt.Sprintf("%dm", minutes-1), "exp_samples": samples,
		}},
	}
}

// pad fills the values of a series until a minute with none. A series that ends is stale at once, as
// Prometheus makes it.
func pad(values []string, until int) []string {
	if len(values) > 0 && len(values) < until {
		values = append(values, "stale")
	}
	return append(values, slices.Repeat([]string{"_"}, until-len(values))...)
}

var line = regexp.MustCompile(`(?m)^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$`)

// series returns the values of the metrics that are asked for, by series. A label that the target
// has itself gets another name, as Prometheus gives it.
func series(text string, target Target, asked map[string]bool) map[string]string {
	found := map[string]string{}
	for _, match := range line.FindAllStringSubmatch(text, -1) {
		name, labels, value := match[1], match[2], match[3]
		if !asked[name] {
			continue
		}
		labels = regexp.MustCompile(`(^|,)(namespace|job|instance)=`).ReplaceAllString(labels, "${1}exported_$2=")
		if labels != "" {
			labels += ","
		}
		found[fmt.Sprintf("%s{%snamespace=%q,job=%q,instance=%q}", name, labels, target.Namespace, target.Job, target.Instance)] = value
	}
	return found
}
