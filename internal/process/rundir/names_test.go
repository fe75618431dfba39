package rundir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// Content such as that of galaxy-operator splits the path of the inventory at the slashes, and takes
// parts 4 to 6, counted from the root.
func TestTheInventorysPathHasTheResource(t *testing.T) {
	name := strings.Repeat("a", 253)
	for why, test := range map[string]struct{ resource, want string }{
		"in a namespace":               {"g.example.com/v1/Kind/ns/name", "g.example.com/v1/Kind/ns/name/inventory/hosts"},
		"without one":                  {"g.example.com/v1/Kind/name", "g.example.com/v1/Kind/name/inventory/hosts"},
		"the longest names":            {strings.Repeat("g", 253) + "/v1/Kind/ns/" + name, strings.Repeat("g", 253) + "/v1/Kind/ns/" + name + "/inventory/hosts"},
		"no name of a directory":       {"g/v1/Kind/ns/" + strings.Repeat("a", 256), ""},
		"a name that leads out":        {"g/v1/Kind/..", ""},
		"what Ansible takes for hosts": {"rbac/v1/Role/ns/a,b", ""},
		"no resource":                  {"", ""},
	} {
		t.Run(why, func(t *testing.T) {
			for _, root := range []string{"r", tooLong} {
				path := filepath.Join(scratch.Short(t), root)
				r := openIn(t, path, scratch.Short(t))
				d := prepare(t, r, "run-1", Inputs{Resource: test.resource})
				parts := strings.SplitN(d.Inventory, "/", 5)
				if got := parts[4]; test.want != "" && got != test.want {
					t.Errorf("got %q", d.Inventory)
				}
				if test.want == "" && d.Inventory != filepath.Join(d.Private, "inventory", "hosts") {
					t.Errorf("got %q", d.Inventory)
				}
				if text, err := os.ReadFile(d.Inventory); err != nil || !strings.HasPrefix(string(text), "localhost ") {
					t.Errorf("got %q, %v", text, err)
				}
				closeDir(t, d, 0)
				above := strings.Join(parts[:4], "/")
				if test.want != "" && exists(above) {
					t.Errorf("%s is left after the run", above)
				}
				if err := r.Close(); err != nil || test.want != "" && exists(filepath.Dir(above)) {
					t.Errorf("%s is left after the end: %v", filepath.Dir(above), err)
				}
			}
		})
	}
}

func TestNamedPathsOfAKilledManagerAreRemoved(t *testing.T) {
	path := filepath.Join(scratch.Short(t), "runs")
	killed := openIn(t, path, scratch.Short(t))
	d := prepare(t, killed, "run", Inputs{Resource: "g/v1/Kind/ns/name"})
	if err := killed.lock.Close(); err != nil { // The kernel does this, and nothing else.
		t.Fatal(err)
	}
	openIn(t, path, scratch.Short(t))
	if left := strings.Join(strings.SplitN(d.Inventory, "/", 4)[:3], "/"); exists(left) {
		t.Errorf("%s is left", left)
	}
}

// Programs that tidy up /tmp remove what has not changed for days.
func TestNamedPathsComeBack(t *testing.T) {
	r := openIn(t, filepath.Join(scratch.Short(t), "runs"), scratch.Short(t))
	closeDir(t, prepare(t, r, "run-1", Inputs{Resource: "g/v1/Kind/ns/name"}), 0)
	if err := os.RemoveAll(r.namesPath); err != nil {
		t.Fatal(err)
	}
	d := prepare(t, r, "run-2", Inputs{Resource: "g/v1/Kind/ns/name"})
	if !strings.HasSuffix(d.Inventory, "/g/v1/Kind/ns/name/inventory/hosts") || !exists(d.Inventory) {
		t.Errorf("got %q", d.Inventory)
	}
	closeDir(t, d, 0)
}
