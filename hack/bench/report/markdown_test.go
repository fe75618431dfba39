package report

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMarkdown(t *testing.T) {
	r := charts()
	r.Rows = example().Rows
	const want = `two cores, <quiet>

| | plain | warm |
|---|---:|---:|
| Wall time: a role (1 task) | 8.000 s | 0.800 s |
| Wall time: another | ≈ 16.0 s | 2.000 s |
| CPU: a role | 0.000 s | 0.000 s |
| CPU: another | 0.000 s | 0.000 s |
| CPU: a third | 0.000 s | 0.000 s |

| Goal | measured | goal | |
|---|---:|---:|---|
| Memory: idle | 61.2 MiB | ≤ 120 MiB | met |
| Speed: decode | 99.9 MB/s | ≥ 100 MB/s | MISSED |
| Speed: ratio | 1.051 | ≤ 1.05 | MISSED |
`
	var got strings.Builder
	if err := r.Markdown(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
	if err := r.Markdown(fullDisk{}); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}

func TestSplice(t *testing.T) {
	const place = "# Title\n\n" + spliceBegin + "\nold\n" + spliceEnd + "\n\nend\n"
	for name, test := range map[string]struct {
		document, want string
		fail           bool
	}{
		"in the place of what was there": {document: place, want: "# Title\n\n" + spliceBegin + "\nnew\ntext\n" + spliceEnd + "\n\nend\n"},
		"where nothing was":              {document: spliceBegin + "\n" + spliceEnd + "\n", want: spliceBegin + "\nnew\ntext\n" + spliceEnd + "\n"},
		"no place":                       {document: "# Title\n", fail: true},
		"no end":                         {document: spliceBegin + "\nold\n", fail: true},
		"the end first":                  {document: spliceEnd + "\n" + spliceBegin + "\n", fail: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Splice(test.document, "new\ntext\n\n")
			if diff := cmp.Diff(test.want, got); (err != nil) != test.fail || diff != "" {
				t.Errorf("error %v\n%s", err, diff)
			}
		})
	}
	again, err := Splice(place, "old")
	if diff := cmp.Diff(place, again); err != nil || diff != "" {
		t.Errorf("the same text changes something: error %v\n%s", err, diff)
	}
}
