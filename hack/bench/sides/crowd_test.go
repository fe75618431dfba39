package sides

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/hack/bench/report"
)

func TestCells(t *testing.T) {
	usual, full := cells(false), cells(true)
	want := []cell{
		{plainWay, 1, 2}, {plainWay, 10, 2}, {coldWay, 1, 2}, {coldWay, 10, 2},
		{warmWay, 1, 2}, {warmWay, 10, 2}, {warmWay, 50, 2}, {warmWay, 10, 1}, {warmWay, 10, 4},
	}
	if diff := cmp.Diff(want, usual, cmp.AllowUnexported(cell{})); diff != "" {
		t.Error(diff)
	}
	if len(full) != 27 {
		t.Errorf("%d are everything", len(full))
	}
	for _, c := range usual {
		if !slices.Contains(full, c) {
			t.Errorf("%s is missing in everything", c)
		}
	}
}

func TestEstimated(t *testing.T) {
	results := map[cell]result{
		{plainWay, 10, 2}: {wall: 40, cpu: 7, memory: 300}, {coldWay, 10, 2}: {wall: 41}, {coldWay, 50, 2}: {wall: 190, cpu: 6},
	}
	estimated(results)
	want := map[cell]result{
		{plainWay, 10, 2}: {wall: 40, cpu: 7, memory: 300}, {plainWay, 50, 2}: {wall: 200, cpu: 7, from: 10},
		{coldWay, 10, 2}: {wall: 41}, {coldWay, 50, 2}: {wall: 190, cpu: 6},
	}
	if diff := cmp.Diff(want, results, cmp.AllowUnexported(cell{}, result{})); diff != "" {
		t.Error(diff)
	}
}

func TestRowsOfCrowds(t *testing.T) {
	results := map[cell]result{
		{plainWay, 10, 2}: {wall: 40, cpu: 7}, {plainWay, 50, 2}: {wall: 200, cpu: 7, from: 10},
		{warmWay, 10, 2}: {wall: 4, cpu: 0.6, memory: 300}, {warmWay, 50, 2}: {wall: 20, cpu: 0.5}, {warmWay, 10, 4}: {wall: 5, cpu: 0.7},
	}
	type seen struct {
		name string
		row  float64
		goal *report.Goal
		note bool
	}
	want := []seen{
		{"plain ansible-runner, 10 CRs, 2 slots", 40, nil, false},
		{"… CPU of each", 7, nil, false},
		{"warm runs, 10 CRs, 2 slots", 4, nil, false},
		{"… CPU of each", 0.6, nil, false},
		{"… memory of all (PSS), peak", 300, nil, true},
		{"plain ansible-runner, 50 CRs, 2 slots", 200, nil, true},
		{"warm runs, 50 CRs, 2 slots", 20, report.AtMost(35), false},
		{"… CPU of each", 0.5, nil, false},
		{"warm runs, 10 CRs, 4 slots", 5, nil, false},
		{"… CPU of each", 0.7, nil, false},
	}
	var got []seen
	for _, row := range crowdRows(results) {
		got = append(got, seen{row.Name, row.Value, row.Goal, row.Note != ""})
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(seen{})); diff != "" {
		t.Error(diff)
	}
	chart := crowdChart(results)
	if len(chart.Series) != 3 || len(chart.Groups) != 3 {
		t.Fatalf("got %+v", chart)
	}
	fifty := []report.Bar{{Value: 200, Estimated: true}, {}, {Value: 20}}
	if diff := cmp.Diff(fifty, chart.Groups[2].Bars); diff != "" {
		t.Error(diff)
	}
}
