package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/internal/pyenv"
)

func TestCompare(t *testing.T) {
	got := compare("wall time", "s", report.Samples{2, 4}, report.Samples{2, 2})
	want := []report.Row{
		{Part: coldPart, Name: "wall time, our runner", Value: 3, Low: 2, High: 4, Unit: "s"},
		{Part: coldPart, Name: "wall time, plain ansible-runner run", Value: 2, Low: 2, High: 2, Unit: "s"},
		{Part: coldPart, Name: "wall time, ratio", Value: 1.5, Low: 1, High: 2, Goal: report.AtMost(mostOverhead)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatFailsIsNoMeasurement(t *testing.T) {
	failure := errors.New("no")
	got, err := measured(t.Context(), func(context.Context) error { return failure })
	if !errors.Is(err, failure) || got != (cost{}) {
		t.Errorf("got %+v, error %v", got, err)
	}
}

func TestCostsAreNotNegative(t *testing.T) {
	got, err := measured(t.Context(), func(context.Context) error { return nil })
	if err != nil || got.wall < 0 || got.cpu < 0 {
		t.Errorf("got %+v, error %v", got, err)
	}
	var all costs
	all.add(cost{wall: 1, cpu: 2})
	all.add(cost{wall: 3, cpu: 4})
	want := costs{wall: report.Samples{1, 3}, cpu: report.Samples{2, 4}}
	if diff := cmp.Diff(want, all, cmp.AllowUnexported(costs{})); diff != "" {
		t.Error(diff)
	}
}

func TestAPlainRunGetsTheSameVariablesAndInterpreter(t *testing.T) {
	c := &coldRuns{env: pyenv.Env{Python: "/opt/python"}}
	dir := filepath.Join(t.TempDir(), "private")
	if err := c.prepare(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"env/extravars":   extraVars,
		"inventory/hosts": "localhost ansible_connection=local ansible_python_interpreter=/opt/python\n",
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
			t.Errorf("%s: error %v\n%s", name, err, diff)
		}
	}
}
