package sides

import (
	"fmt"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/hack/bench/trial"
)

// oneRun draws runs of one CR: what they take in each way, and where the time of warm
// ones goes.
type oneRun struct{ wall, cpu, where report.Chart }

func newOneRun() *oneRun {
	var all []string
	for _, w := range ways() {
		all = append(all, string(w))
	}
	return &oneRun{
		wall: report.Chart{Title: "One run, nothing to change: wall time", Unit: "s", Series: all},
		cpu:  report.Chart{Title: "One run: CPU of all its processes", Unit: "s", Series: all},
		where: report.Chart{
			Title: "Where the time of a warm run goes, until its status", Unit: "ms", Stacked: true,
			Series: []string{"until start", "first event", "first task", "tasks", "end", "status"},
		},
	}
}

// add adds the medians of a role's runs.
func (o *oneRun) add(c content, t *turns) {
	name := c.Role + "\n(" + plural(t.warm.runs[0].Tasks, "task") + ")"
	add := func(chart *report.Chart, figures ...report.Samples) {
		group := report.Group{Name: name}
		for _, f := range figures {
			group.Bars = append(group.Bars, report.Bar{Value: f.Median()})
		}
		chart.Groups = append(chart.Groups, group)
	}
	add(&o.wall, t.plain.wall, t.cold.wall, t.warm.wall)
	add(&o.cpu, t.plain.cpu, t.cold.cpu, t.warm.cpu)
	var phases []report.Samples
	for i := range (trial.Run{}).Phases() {
		phases = append(phases, t.warm.phase(i))
	}
	add(&o.where, phases...)
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
