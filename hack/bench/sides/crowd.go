package sides

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/hack/bench/trial"
)

const (
	crowdPart = "Many custom resources of the reference role, changed at once"
	// Goal of many: so many of them with so many slots, in s.
	goalCRs, goalSlots = 50, 2
	mostForCrowd       = 35.0
)

// way is how roles are run.
type way string

const (
	plainWay way = "plain ansible-runner"
	coldWay  way = "cold runs"
	warmWay  way = "warm runs"
)

func ways() []way { return []way{plainWay, coldWay, warmWay} }

// cell is one measurement of many CRs.
type cell struct {
	way        way
	crs, slots int
}

// result is what a cell came to: seconds, of the processor for each run.
type result struct {
	wall, cpu float64
	// memory is the most of the manager, its servers and its live runs together, in MiB;
	// 0 where it was not measured.
	memory float64
	// from is how many CRs were measured where the cell has more; 0 where all were.
	from int
}

// cells are what is measured: what fits into some minutes, or everything. What is
// missing for the goal's number of CRs is estimated.
func cells(full bool) []cell {
	var all []cell
	for _, w := range ways() {
		for _, slots := range []int{2, 1, 4} {
			for _, crs := range []int{1, 10, 50} {
				usual := slots == goalSlots && (w == warmWay || crs < goalCRs) || w == warmWay && crs == 10
				if full || usual {
					all = append(all, cell{w, crs, slots})
				}
			}
		}
	}
	return all
}

// estimated adds what results for fewer CRs say about the goal's number.
func estimated(results map[cell]result) {
	for _, w := range ways() {
		goal, some := cell{w, goalCRs, goalSlots}, cell{w, 10, goalSlots}
		base, known := results[some]
		if _, measured := results[goal]; measured || !known {
			continue
		}
		results[goal] = result{wall: base.wall * float64(goal.crs) / float64(some.crs), cpu: base.cpu, from: some.crs}
	}
}

// crowd lets many CRs change at once, by one manager after the other in one namespace.
func (s *sides) crowd(ctx context.Context) error {
	_, reference, _ := trial.Contents(s.Root)
	s.Say("warm: creating %d custom resources of the reference role", goalCRs)
	if err := s.warm.Create(ctx, reference, reference.Names(goalCRs)); err != nil {
		return err
	}
	results := map[cell]result{}
	for _, c := range cells(s.Full) {
		s.Say("warm: %s", c)
		r, err := s.cell(ctx, c, reference)
		if err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
		results[c] = r
	}
	estimated(results)
	s.Rows = append(s.Rows, crowdRows(results)...)
	s.Charts = append(s.Charts, crowdChart(results))
	return nil
}

func (c cell) String() string {
	return fmt.Sprintf("%s, %s, %s", c.way, plural(c.crs, "CR"), plural(c.slots, "slot"))
}

func (s *sides) cell(ctx context.Context, c cell, reference trial.Content) (result, error) {
	names := reference.Names(c.crs)
	if c.way == plainWay {
		plain, err := trial.NewPlain(s.options("warm", "many"))
		if err != nil {
			return result{}, err
		}
		cost, err := plain.Run(ctx, reference, names, c.slots)
		return result{wall: cost.Wall.Seconds(), cpu: cost.CPU.Seconds() / float64(c.crs)}, err
	}
	if err := s.manned(ctx, c.way == warmWay, c.slots); err != nil {
		return result{}, err
	}
	batch, err := s.only.Change(ctx, reference, names)
	if c.way == warmWay {
		s.launches = s.launches.Plus(batch.Launches)
	}
	r := result{wall: batch.Wall.Seconds(), cpu: batch.CPU.Seconds() / float64(c.crs)}
	if err != nil || c.crs != 10 {
		return r, err
	}
	// By themselves, because to look costs time.
	memory, err := s.only.Measure(ctx, reference, reference.Names(c.slots))
	r.memory = memory.Peak
	return r, err
}

// manned makes sure that the only manager left is such a one.
func (s *sides) manned(ctx context.Context, warm bool, slots int) (err error) {
	kind := strconv.FormatBool(warm) + strconv.Itoa(slots)
	if s.only != nil && s.kind == kind {
		return nil
	}
	if err := s.dismiss(); err != nil {
		return err
	}
	o := s.options("warm", "m"+kind)
	o.Warm, o.Slots, o.Alone = warm, slots, true
	if s.only, err = trial.Start(ctx, o); err != nil {
		return err
	}
	s.kind = kind
	if warm {
		return s.only.Heat(ctx)
	}
	return nil
}

// dismiss stops all managers.
func (s *sides) dismiss() error {
	var errs []error
	for _, site := range []**trial.Site{&s.cold, &s.warm, &s.only} {
		if *site != nil {
			errs = append(errs, (*site).Stop())
			*site = nil
		}
	}
	return errors.Join(errs...)
}

func crowdRows(results map[cell]result) []report.Row {
	var rows []report.Row
	for _, slots := range []int{2, 1, 4} {
		for _, crs := range []int{1, 10, 50} {
			for _, w := range ways() {
				c := cell{w, crs, slots}
				r, known := results[c]
				if !known {
					continue
				}
				wall, cpu := report.Samples{r.wall}.Row("s"), report.Samples{r.cpu}.Row("s")
				wall.Part, wall.Name = crowdPart, c.String()
				cpu.Part, cpu.Name = crowdPart, "… CPU of each"
				if r.from > 0 {
					wall.Note = fmt.Sprintf("not measured: %d times what %d took; --full measures it", crs/r.from, r.from)
					rows = append(rows, wall)
					continue
				}
				if w == warmWay && crs == goalCRs && slots == goalSlots {
					wall.Goal = report.AtMost(mostForCrowd)
				}
				rows = append(rows, wall, cpu)
				if r.memory > 0 {
					memory := report.Samples{r.memory}.Row("MiB")
					memory.Part, memory.Name = crowdPart, "… memory of all (PSS), peak"
					memory.Note = "of the manager, its servers and as many live runs as there are slots"
					rows = append(rows, memory)
				}
			}
		}
	}
	return rows
}

func crowdChart(results map[cell]result) report.Chart {
	chart := report.Chart{Title: fmt.Sprintf("CRs changed at once, until the last status (%d slots)", goalSlots), Unit: "s"}
	for _, w := range ways() {
		chart.Series = append(chart.Series, string(w))
	}
	for _, crs := range []int{1, 10, 50} {
		group := report.Group{Name: plural(crs, "CR")}
		for _, w := range ways() {
			r := results[cell{w, crs, goalSlots}]
			group.Bars = append(group.Bars, report.Bar{Value: r.wall, Estimated: r.from > 0})
		}
		chart.Groups = append(chart.Groups, group)
	}
	return chart
}
