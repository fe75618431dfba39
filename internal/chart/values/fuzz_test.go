package values

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/boundedyaml"
)

// FuzzFrom makes values of what a tenant has written into a Secret. Each value in them was counted before
// anything was parsed, the mask hides each, and no error shows any.
func FuzzFrom(f *testing.F) {
	f.Add("a: {b: [1, 2]}\n", "text", true)
	f.Add("- - ? secretly\n", "a: b", false)
	f.Add("a: |\r  secretly\u0085b: {c}\u2028? d\t: [{},[]]", "secretly", true)
	f.Add("a: &a [secretly]\nb: *a\n<<: {c: d}", "a: {b: c}", false)
	f.Fuzz(func(t *testing.T, first, second string, atPath bool) {
		objects := []From{from(first), from(second)}
		if atPath {
			objects[1].TargetPath = []string{"a", "b"}
		}
		got, err := Merge(objects)
		if err != nil {
			if strings.Contains(err.Error(), "secretly") {
				t.Errorf("the error shows what is in the object: %v", err)
			}
			return
		}
		if most := 2*boundedyaml.Entries([]byte(first)) + 2*boundedyaml.Entries([]byte(second)) + 8; count(got) > most && !strings.ContainsAny(first+second, "*") {
			t.Errorf("%d values of %q and %q, and %d were counted", count(got), first, second, most)
		}
		if tree, is := objects[0].Shown().(map[string]any); second == "" && !atPath && is && !reflect.DeepEqual(tree, got) && len(tree) > 0 {
			t.Errorf("%v is shown of %v", tree, got)
		}
		checkHidden(t, got)
	})
}

// count returns how many values a value has.
func count(value any) int {
	n := 1
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			n += count(inner)
		}
	case []any:
		for _, inner := range v {
			n += count(inner)
		}
	}
	return n
}

// checkHidden looks for the lines of the texts in a message that has each alone.
func checkHidden(t *testing.T, tree any) {
	t.Helper()
	mask := NewMask(tree)
	var look func(value any)
	look = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for _, inner := range v {
				look(inner)
			}
		case []any:
			for _, inner := range v {
				look(inner)
			}
		case string:
			for line := range strings.Lines(v) {
				line = strings.TrimSpace(line)
				shown := strings.ReplaceAll(mask.Text("got <"+line+">"), redacted, "")
				if len([]rune(line)) >= minLong && !strings.Contains(hiddenAll, line) && strings.Contains(shown, line) {
					t.Errorf("%q shows %q", shown, line)
				}
			}
		}
	}
	look(tree)
}
