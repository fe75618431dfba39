package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/hack/bench/trial"
)

// Goal of many custom resources: so many of them with so many slots, in s.
const (
	goalCRs, goalSlots = 50, 2
	mostForCrowd       = 35.0
)

// cell is one measurement of many CRs.
type cell struct {
	way        way
	crs, slots int
}

// usual reports whether the cell is measured without --full: what fits into some
// minutes. What is missing for the goal's number of CRs is estimated.
func (c cell) usual() bool {
	return c.slots == goalSlots && (c.way == warmWay || c.crs < goalCRs) || c.way == warmWay && c.crs == 10
}

// row is the wall time of a cell.
func (c cell) row() report.Row {
	r := report.Row{Name: fmt.Sprintf("%s, %s, %s", c.way, plural(c.crs, "CR"), plural(c.slots, "slot")), Unit: "s"}
	if c.slots == goalSlots {
		title := fmt.Sprintf("CRs changed at once, until the last status (%d slots)", goalSlots)
		r.Cell = report.Cell{Title: title, Line: plural(c.crs, "CR"), Column: string(c.way)}
	}
	if c == (cell{warmWay, goalCRs, goalSlots}) {
		r.Goal = report.AtMost(mostForCrowd)
	}
	return r
}

// crowd lets many CRs change at once, by one manager after the other in one namespace.
func (s *sides) crowd(ctx context.Context) error {
	s.title = "Many custom resources of the reference role, changed at once"
	_, reference, _ := trial.Contents(s.root)
	s.say("warm: creating %d custom resources of the reference role", goalCRs)
	if err := errors.Join(s.create(ctx, warmWay, reference, reference.Names(goalCRs)), s.dismiss()); err != nil {
		return err
	}
	for _, w := range ways() {
		for _, slots := range []int{2, 1, 4} {
			if err := s.many(ctx, w, slots); err != nil {
				return fmt.Errorf("%s, %s: %w", w, plural(slots, "slot"), err)
			}
		}
	}
	return nil
}

// many measures the cells of one way and number of slots, if there are any.
func (s *sides) many(ctx context.Context, w way, slots int) error {
	if !s.settings.full && !(cell{w, 10, slots}).usual() {
		return nil
	}
	by, err := s.open(ctx, w, trial.Options{Namespace: "warm", Slots: slots, Alone: true})
	if err != nil {
		return err
	}
	return errors.Join(s.cells(ctx, cell{way: w, slots: slots}, by), s.dismiss())
}

func (s *sides) cells(ctx context.Context, c cell, by runner) error {
	var ten float64 // the wall time of ten CRs
	for _, crs := range []int{1, 10, goalCRs} {
		c.crs = crs
		row := c.row()
		switch {
		case s.settings.full || c.usual():
			s.say("warm: %s", row.Name)
			wall, err := s.one(ctx, c, by)
			if err != nil {
				return err
			}
			if crs == 10 {
				ten = wall
			}
		case c.slots == goalSlots:
			row.Estimated, row.Note = true, fmt.Sprintf("not measured: %d times what 10 took; --full measures it", crs/10)
			s.add(row, ten*float64(crs)/10)
		}
	}
	return nil
}

// one measures a cell, and gives its wall time in s.
func (s *sides) one(ctx context.Context, c cell, by runner) (float64, error) {
	_, reference, _ := trial.Contents(s.root)
	batch, err := by.Change(ctx, reference, reference.Names(c.crs))
	if err != nil {
		return 0, err
	}
	if c.way == warmWay {
		s.launches = s.launches.Plus(batch.Launches)
	}
	s.add(c.row(), batch.Wall.Seconds())
	s.add(report.Row{Name: "… CPU of each", Unit: "s"}, batch.CPU.Seconds()/float64(c.crs))
	if c.way == plainWay || c.crs != 10 {
		return batch.Wall.Seconds(), nil
	}
	memory, err := by.Measure(ctx, reference, reference.Names(c.slots)) // By itself, because to look costs time.
	s.add(report.Row{Name: "… memory of all (PSS), peak", Unit: "MiB", Note: "of the manager, its servers and as many live runs as there are slots"}, memory.Peak)
	return batch.Wall.Seconds(), err
}
