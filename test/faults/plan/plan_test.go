package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesAreStableAndUnique(t *testing.T) {
	got := []string{Plan{Update, StatusResult, Lost}.String(), Plan{Operation: Create}.String()}
	if diff := cmp.Diff([]string{"update/status-result/lost", "create/without/fault"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	names := map[Plan]bool{}
	for _, p := range All() {
		names[p] = true
	}
	if len(names) != len(All()) || len(names) < 1000 {
		t.Errorf("got %d plans, %d of them different, want 1000 and more", len(All()), len(names))
	}
}

func TestTheProductIsWhole(t *testing.T) {
	all := map[Plan]bool{}
	for _, p := range All() {
		all[p] = true
	}
	var missing []string
	for _, o := range operations() {
		if !o.Course().principal {
			continue
		}
		for _, point := range o.points() {
			for _, fault := range Faults() {
				if p := (Plan{o, point, fault}); !all[p] && fault != Frozen {
					missing = append(missing, string(point)+"/"+string(fault))
				}
			}
		}
	}
	slices.Sort(missing)
	want := map[string]bool{"event/403": true, "event/409": true, "event/race": true}
	for _, point := range Phases() {
		want[string(point)+"/race"], want[string(point)+"/403"] = true, true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Compact(missing)); diff != "" {
		t.Errorf("what is left out (-want +got):\n%s", diff)
	}
}

func TestFastCoversEveryDimension(t *testing.T) {
	covered := map[string]bool{}
	all := All()
	for _, p := range Fast() {
		if !slices.Contains(all, p) {
			t.Errorf("%s is no plan", p)
		}
		covered[string(p.Operation)], covered[string(p.Point)], covered[string(p.Fault)] = true, true, true
	}
	for _, p := range all {
		for _, value := range []string{string(p.Operation), string(p.Point), string(p.Fault)} {
			if !covered[value] {
				t.Errorf("nothing fast covers %q", value)
				covered[value] = true
			}
		}
	}
}

func TestSelect(t *testing.T) {
	got, err := Select(All(), "^update/status-result/(lost|409)$")
	if diff := cmp.Diff([]Plan{{Update, StatusResult, Conflict}, {Update, StatusResult, Lost}}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := Select(All(), "("); err == nil {
		t.Error("got no error of a broken expression")
	}
	if _, err := Select(All(), "no-such-plan"); err == nil || !strings.Contains(err.Error(), All()[0].String()) {
		t.Errorf("got %v, want an error that shows what a name is", err)
	}
}
