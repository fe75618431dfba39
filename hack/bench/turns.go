package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/hack/bench/trial"
)

// turns are runs of one role, in turns: one of each way in each round.
type turns map[way]side

// side is what the runs of one way took.
type side struct {
	wall, cpu []float64 // in s
	runs      []trial.Run
}

// take has each way run the role once.
func (s *sides) take(ctx context.Context, c content, t turns) error {
	for _, w := range ways() {
		batch, err := s.ways[w].Change(ctx, c.Content, c.Names(1))
		if err != nil {
			return err
		}
		t[w] = t[w].with(batch.Runs[0], batch.CPU)
		if w == warmWay {
			s.launches = s.launches.Plus(batch.Launches)
		}
	}
	return nil
}

func (s side) with(run trial.Run, cpu time.Duration) side {
	return side{append(s.wall, run.Ended.Sub(run.Started).Seconds()), append(s.cpu, cpu.Seconds()), append(s.runs, run)}
}

// row is the median of a figure of each run, in ms.
func (s side) row(name string, figure func(trial.Run) time.Duration) report.Row {
	var samples []float64
	for _, run := range s.runs {
		samples = append(samples, milliseconds(figure(run)))
	}
	return report.Row{Name: name, Unit: "ms"}.Of(samples...)
}

// rows are all figures of a content's runs.
func (t turns) rows(c content) []report.Row {
	line := c.Role + " (" + plural(t[warmWay].runs[0].Tasks, "task") + ")"
	var wall, cpu [][]float64
	for _, w := range ways() {
		wall, cpu = append(wall, t[w].wall), append(cpu, t[w].cpu)
	}
	rows := append(
		compared("wall time", report.Cell{Title: "One run, nothing to change: wall time", Line: line}, wall),
		compared("CPU", report.Cell{Title: "One run: CPU of all its processes", Line: line}, cpu)...)
	rows[0].Note = fmt.Sprintf("medians of %d runs each, in turns, nothing to change; ratios are of medians, and their low … high of neighbours", c.rounds)
	rows[len(rows)/2].Note = "all processes of a run; of ours those of the manager too: itself, the servers of warm runs and their forks, from the change to the status"
	for _, w := range []way{coldWay, warmWay} {
		name := strings.TrimSuffix(string(w), " runs")
		rows = append(rows,
			t[w].row("from change to first task, "+name, func(r trial.Run) time.Duration { return r.FirstTask.Sub(r.Changed) }),
			t[w].row("from change to status, "+name, func(r trial.Run) time.Duration { return r.Reported.Sub(r.Changed) }))
	}
	rows = append(rows, t.phases(line)...)
	for i := range rows {
		rows[i].Part = "A run of " + c.Name
		if !c.goal {
			rows[i].Goal = nil
		}
	}
	return rows
}

// compared are the rows of what runs of each way took, in s.
func compared(name string, at report.Cell, samples [][]float64) []report.Row {
	var rows []report.Row
	for i, run := range []string{"plain ansible-runner run", "cold run", "warm run"} {
		at.Column = string(ways()[i])
		rows = append(rows, report.Row{Name: name + ", " + run, Unit: "s", Cell: at}.Of(samples[i]...))
	}
	return append(rows,
		report.Row{Name: name + ", cold / plain", Goal: report.AtMost(mostOfCold)}.Ratio(samples[1], samples[0]),
		report.Row{Name: name + ", warm / plain", Goal: report.AtMost(mostOfWarm)}.Ratio(samples[2], samples[0]))
}

// phases are those of warm runs.
func (t turns) phases(line string) []report.Row {
	goals := map[string]*report.Goal{
		trial.UntilEvent: report.AtMost(mostUntilEvent), trial.UntilEnd: report.AtMost(mostUntilEnd), trial.UntilStatus: report.AtMost(mostUntilStatus),
	}
	tasks := t[warmWay].runs[0].Tasks
	var rows []report.Row
	for i, phase := range t[warmWay].runs[0].Phases() {
		row := t[warmWay].row("… "+phase.Name, func(r trial.Run) time.Duration { return r.Phases()[i].Taken })
		row.Goal = goals[phase.Name]
		row.Cell = report.Cell{Title: "Where the time of a warm run goes", Line: line, Column: phase.Name}
		rows = append(rows, row)
		if phase.Name != trial.Tasks {
			continue
		}
		rows[i].Note = plural(tasks, "task")
		if tasks > 1 {
			rows = append(rows, t[warmWay].row("… … each of them", func(r trial.Run) time.Duration { return r.Phases()[i].Taken / time.Duration(r.Tasks) }))
		}
	}
	return rows
}
