package watches

import "testing"

func TestFaultsOfJobs(t *testing.T) {
	for why, test := range map[string]struct {
		text string
		want []string
	}{
		"no executor":              {"  executor: pod\n", []string{"4 executor … local, job"}},
		"a job of local runs":      {"  job: {labels: {a: b}}\n", []string{"4 job … executor: job"}},
		"a job of runs said local": {"  executor: local\n  job: {}\n", []string{"5 job … executor: job"}},
		"a misspelled field":       {"  executor: job\n  job:\n    podTemplate: {spec: {containrs: []}}\n", []string{`6 podTemplate … "spec.containrs"`}},
		"a field of another type":  {"  executor: job\n  job:\n    podTemplate: {spec: {priority: high}}\n", []string{"6 podTemplate … PodTemplateSpec"}},
		"no template":              {"  executor: job\n  job: {podTemplate: [a]}\n", []string{"5 podTemplate"}},
		"no label":                 {"  executor: job\n  job: {labels: {a b: c}}\n", []string{"5 job.labels"}},
		"no value of a label":      {"  executor: job\n  job: {labels: {a: [b]}}\n", []string{"5 labels.a"}},
		"a label of the operator":  {"  executor: job\n  job: {labels: {ensign.io/run: x}}\n", []string{"5 labels … operator's own"}},
		"a pod's label of Jobs":    {"  executor: job\n  job:\n    podTemplate: {metadata: {labels: {job-name: x}}}\n", []string{`6 podTemplate … "job-name" is not allowed … Kubernetes`}},
		"a pod's label of ours":    {"  executor: job\n  job:\n    podTemplate: {metadata: {labels: {ensign.io/run: x}}}\n", []string{"6 podTemplate … operator's own"}},
		"no label of a pod":        {"  executor: job\n  job:\n    podTemplate: {metadata: {labels: {a b: c}}}\n", []string{"6 podTemplate.metadata.labels"}},
		"no annotation of a pod":   {"  executor: job\n  job:\n    podTemplate: {metadata: {annotations: {a b: c}}}\n", []string{"6 podTemplate.metadata.annotations"}},
		"an unknown part":          {"  executor: job\n  job: {template: {}}\n", []string{`5 "template" is not a field of job`}},
	} {
		t.Run(why, func(t *testing.T) {
			_, err := one(t, test.text)
			wantFaults(t, err, test.want...)
		})
	}
}

func TestAChartRunsInJobsToo(t *testing.T) {
	got := mustLoad(t, chartOperator(t), chartHead+"  executor: job\n  job: {labels: {a: b}}\n")[0]
	if got.Chart == nil || got.Job == nil || got.Job.Labels["a"] != "b" {
		t.Errorf("got %+v", got)
	}
	_, err := load(t, chartOperator(t), chartHead+"  job: {}\n")
	wantFaults(t, err, "4 job … executor: job")
}
