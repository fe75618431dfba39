package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesAreStableAndUnique(t *testing.T) {
	for want, p := range map[string]Plan{
		"update/status-result/lost":   {Update, StatusResult, Lost},
		"recreate/before-status/away": {Recreate, BeforeStatus, Away},
		"create/without/fault":        {Operation: Create},
	} {
		if got := p.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	names := map[string]bool{}
	for _, p := range All() {
		if names[p.String()] {
			t.Errorf("%s stands twice", p)
		}
		names[p.String()] = true
	}
	if len(names) < 300 {
		t.Errorf("got %d plans, want 300 and more", len(names))
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

func TestRealPlansArePlans(t *testing.T) {
	all := All()
	for _, p := range Real() {
		if !slices.Contains(all, p) {
			t.Errorf("%s is no plan", p)
		}
		if p.Point.Phase() && !slices.Contains([]Point{DirectoryMade, InputsWritten, MidTask}, p.Point) {
			t.Errorf("%s: the real Ansible does not tell of this phase", p)
		}
	}
}

func TestSelect(t *testing.T) {
	all := All()
	got, err := Select(all, "^update/status-result/lost$")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Plan{{Update, StatusResult, Lost}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := Select(all, ""); err != nil || len(got) != len(all) {
		t.Errorf("without an expression: %d plans, %v", len(got), err)
	}
	if _, err := Select(all, "("); err == nil {
		t.Error("got no error of a broken expression")
	}
	if _, err := Select(all, "no-such-plan"); err == nil || !strings.Contains(err.Error(), all[0].String()) {
		t.Errorf("got %v, want an error that shows what a name is", err)
	}
}
