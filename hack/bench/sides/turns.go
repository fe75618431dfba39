package sides

import (
	"context"
	"fmt"
	"time"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/hack/bench/trial"
)

// turns are runs of one role, in turns: one of each way in each round.
type turns struct {
	plain, cold, warm side
	launches          trial.Launches
}

// side is what the runs of one way took.
type side struct {
	wall, cpu report.Samples // in s
	runs      []trial.Run    // none of plain ones
}

func (t *turns) take(ctx context.Context, s *sides, c content) error {
	plain, err := s.plain.Run(ctx, c.Content, c.Names(1), 1)
	if err != nil {
		return err
	}
	t.plain.add(plain.Wall, plain.CPU)
	for _, our := range []struct {
		site *trial.Site
		to   *side
	}{{s.cold, &t.cold}, {s.warm, &t.warm}} {
		batch, err := our.site.Change(ctx, c.Content, c.Names(1))
		if err != nil {
			return err
		}
		run := batch.Runs[0]
		our.to.add(run.Ended.Sub(run.Started), batch.CPU)
		our.to.runs = append(our.to.runs, run)
		if our.site == s.warm {
			t.launches = t.launches.Plus(batch.Launches)
		}
	}
	return nil
}

func (s *side) add(wall, cpu time.Duration) {
	s.wall, s.cpu = append(s.wall, wall.Seconds()), append(s.cpu, cpu.Seconds())
}

// each returns a figure of each run, in ms.
func (s *side) each(figure func(trial.Run) time.Duration) report.Samples {
	var samples report.Samples
	for _, run := range s.runs {
		samples = append(samples, milliseconds(figure(run)))
	}
	return samples
}

// phase returns what the i-th phase took in each run, in ms.
func (s *side) phase(i int) report.Samples {
	return s.each(func(r trial.Run) time.Duration { return r.Phases()[i].Taken })
}

func (t *turns) rows(c content) []report.Row {
	part := "A run of " + c.Name
	var rows []report.Row
	add := func(row report.Row, name, note string, goal *report.Goal) {
		row.Part, row.Name, row.Goal, row.Note = part, name, goal, note
		rows = append(rows, row)
	}
	of := func(goal *report.Goal) *report.Goal {
		if c.goal {
			return goal
		}
		return nil
	}
	note := fmt.Sprintf("medians of %d runs each, in turns, nothing to change; ratios are of medians, and their low … high of neighbours", c.rounds)
	counted := "all processes of a run; of ours those of the manager too: itself, the servers of warm runs and their forks, from the change to the status"
	for _, figure := range []struct {
		name, note        string
		plain, cold, warm report.Samples
	}{
		{"wall time", note, t.plain.wall, t.cold.wall, t.warm.wall},
		{"CPU", counted, t.plain.cpu, t.cold.cpu, t.warm.cpu},
	} {
		add(figure.plain.Row("s"), figure.name+", plain ansible-runner run", figure.note, nil)
		add(figure.cold.Row("s"), figure.name+", cold run", "", nil)
		add(figure.warm.Row("s"), figure.name+", warm run", "", nil)
		add(report.Ratio(figure.cold, figure.plain), figure.name+", cold / plain", "", of(report.AtMost(mostOfCold)))
		add(report.Ratio(figure.warm, figure.plain), figure.name+", warm / plain", "", of(report.AtMost(mostOfWarm)))
	}
	for _, way := range []struct {
		name string
		side side
	}{{"cold", t.cold}, {"warm", t.warm}} {
		add(way.side.each(func(r trial.Run) time.Duration { return r.FirstTask.Sub(r.Changed) }).Row("ms"), "from change to first task, "+way.name, "", nil)
		add(way.side.each(func(r trial.Run) time.Duration { return r.Reported.Sub(r.Changed) }).Row("ms"), "from change to status, "+way.name, "", nil)
	}
	for i, phase := range t.warm.runs[0].Phases() {
		name, phaseNote := "… "+phase.Name, ""
		if phase.Name == trial.Tasks {
			phaseNote = plural(t.warm.runs[0].Tasks, "task")
		}
		add(t.warm.phase(i).Row("ms"), name, phaseNote, of(phaseGoal(phase.Name)))
		if n := t.warm.runs[0].Tasks; phase.Name == trial.Tasks && n > 1 {
			each := t.warm.each(func(r trial.Run) time.Duration { return r.Phases()[i].Taken / time.Duration(r.Tasks) })
			add(each.Row("ms"), "… … each of them", "", nil)
		}
	}
	return rows
}

// phaseGoal is nil where none is set.
func phaseGoal(phase string) *report.Goal {
	limit, found := map[string]float64{trial.UntilEvent: mostUntilEvent, trial.UntilEnd: mostUntilEnd, trial.UntilStatus: mostUntilStatus}[phase]
	if !found {
		return nil
	}
	return report.AtMost(limit)
}
