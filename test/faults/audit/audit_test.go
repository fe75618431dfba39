package audit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestALineThatIsBeingWrittenIsNotThereYet(t *testing.T) {
	for log, want := range map[string][]string{"": nil, "a\n": {"a"}, "a\n\nb": {"a", ""}, "b": nil} {
		var got []string
		for lines := Lines(strings.NewReader(log)); lines.Scan(); {
			got = append(got, lines.Text())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", log, diff)
		}
	}
}
