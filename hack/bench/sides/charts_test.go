package sides

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/hack/bench/trial"
)

func TestChartsOfOneRun(t *testing.T) {
	drawn := newOneRun()
	drawn.add(content{Content: trial.Content{Role: "role"}}, &turns{
		plain: side{wall: report.Samples{8, 12}, cpu: report.Samples{9}},
		cold:  side{wall: report.Samples{7}, cpu: report.Samples{6}},
		warm:  side{wall: report.Samples{1}, cpu: report.Samples{2}, runs: []trial.Run{aRun(1), aRun(3)}},
	})
	bars := func(values ...float64) []report.Group {
		group := report.Group{Name: "role\n(4 tasks)"}
		for _, v := range values {
			group.Bars = append(group.Bars, report.Bar{Value: v})
		}
		return []report.Group{group}
	}
	for name, test := range map[string]struct {
		chart report.Chart
		want  []report.Group
	}{
		"wall time": {drawn.wall, bars(10, 7, 1)},
		"CPU":       {drawn.cpu, bars(9, 6, 2)},
		"phases":    {drawn.where, bars(2, 4, 8, 16, 32, 64)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.chart.Groups); diff != "" {
				t.Error(diff)
			}
			if len(test.chart.Series) != len(test.chart.Groups[0].Bars) {
				t.Errorf("%d series and %d bars", len(test.chart.Series), len(test.chart.Groups[0].Bars))
			}
		})
	}
	if got := plural(1, "task"); got != "1 task" {
		t.Errorf("got %q", got)
	}
}
