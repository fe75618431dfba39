package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ensign-operator/ensign/hack/bench/report"
)

const (
	// Goal of many custom resources: so many of them with so many slots, in s.
	goalCRs, goalSlots = 50, 2
	mostForCrowd       = 9.0
)

// crowd lets many CRs change at once, by one manager after the other in one namespace.
func (s *sides) crowd(ctx context.Context) error {
	s.title = "Many custom resources of the reference role, changed at once"
	s.say("warm: creating %d custom resources of the reference role", goalCRs)
	if err := errors.Join(s.ways[warmWay].create(ctx, s.reference(), goalCRs), s.dismiss()); err != nil {
		return err
	}
	// The reference role alone has all slots: some are kept free for each kind that has no live run.
	alone := operator{project: s.project(), watches: "reference.yaml", roles: []role{s.reference()}}
	for _, w := range ways() {
		for _, slots := range []int{2, 1, 4} {
			if err := s.cells(ctx, side{way: w, namespace: "warm", slots: slots, operator: alone}); err != nil {
				return fmt.Errorf("%s, %s: %w", w, plural(slots, "slot"), err)
			}
		}
	}
	return nil
}

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
		line := fmt.Sprintf("CRs changed at once, until the last status (%d slots): %s", goalSlots, plural(c.crs, "CR"))
		r.Cell = report.Cell{Table: runsTable, Line: line, Column: string(c.way)}
	}
	if c == (cell{warmWay, goalCRs, goalSlots}) {
		r.Goal = report.AtMost(mostForCrowd)
	}
	return r
}

// cells measures the numbers of CRs with one way and number of slots.
func (s *sides) cells(ctx context.Context, on side) error {
	w, slots, reference := on.way, on.slots, s.reference()
	if !s.settings.full && !(cell{w, 10, slots}).usual() {
		return nil
	}
	by, err := s.open(ctx, on)
	if err != nil {
		return err
	}
	var ten float64 // the wall time of ten CRs
	for _, crs := range []int{1, 10, goalCRs} {
		c := cell{w, crs, slots}
		row := c.row()
		if !s.settings.full && !c.usual() {
			if slots == goalSlots {
				row.Estimated, row.Note = true, fmt.Sprintf("not measured: %d times what 10 took; --full measures it", crs/10)
				s.add(row, ten*float64(crs)/10)
			}
			continue
		}
		s.say("warm: %s", row.Name)
		done, err := s.change(ctx, w, by, reference, crs)
		if err != nil {
			return err
		}
		s.add(row, done.wall.Seconds())
		s.add(report.Row{Name: "… CPU of each", Unit: "s"}, done.cpu.Seconds()/float64(crs))
		if crs == 10 {
			ten = done.wall.Seconds()
		}
		if w == plainWay || crs != 10 {
			continue
		}
		memory, err := by.measure(ctx, reference, slots) // By itself, because to look costs time.
		if err != nil {
			return err
		}
		s.add(report.Row{Name: "… memory of all (PSS), peak", Unit: "MiB", Note: "of the manager, its servers and as many live runs as there are slots"}, memory.peak)
	}
	return s.dismiss()
}
