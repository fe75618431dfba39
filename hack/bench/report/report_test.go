package report

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The forms themselves are in testdata/warm.txt of the program.
func TestFiguresArePutIntoTheirPlace(t *testing.T) {
	r := Report{Machine: "a machine"}
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(page), spliceBegin)
	_, after, _ := strings.Cut(rest, spliceEnd)
	for name, test := range map[string]struct {
		document, want string
		fail           bool
	}{
		"the page that there is": {string(page), before + spliceBegin + r.Markdown() + spliceEnd + after, false},
		"no place":               {"# A\n", "# A\n", true},
		"the end first":          {spliceEnd + spliceBegin, spliceEnd + spliceBegin, true},
	} {
		file := filepath.Join(t.TempDir(), "page.md")
		if err := os.WriteFile(file, []byte(test.document), 0o600); err != nil {
			t.Fatal(err)
		}
		err := r.Splice(file)
		got, readErr := os.ReadFile(file)
		if diff := cmp.Diff(test.want, string(got)); (err != nil) != test.fail || readErr != nil || diff != "" {
			t.Errorf("%s: errors %v, %v\n%s", name, err, readErr, diff)
		}
	}
}

func TestSamples(t *testing.T) {
	for why, test := range map[string]struct{ got, want Row }{
		"the median, and the spread of all":                  {Row{Unit: "s"}.Of(9, 1, 2), Row{Value: 2, Low: 1, High: 9, Unit: "s"}},
		"of an even number it is between the two":            {Row{}.Of(4, 1, 2, 100), Row{Value: 3, Low: 1, High: 100}},
		"one sample has no spread":                           {Row{}.Of(5), Row{Value: 5, Low: 5, High: 5}},
		"the ratio of medians, the spread of who ran beside": {Row{}.Ratio([]float64{1, 2, 9}, []float64{1, 4, 3}), Row{Value: 2.0 / 3, Low: 0.5, High: 3}},
		"the mean": {Row{Mean: true}.Of(9, 1, 2), Row{Mean: true, Value: 4, Low: 1, High: 9}},
		"of small differences, the interval of a median": {
			Row{}.Paired([]float64{12, 10, 11, 12, 13, 12, 12, 11}, []float64{10, 10, 10, 10, 10, 10, 10, 10}), Row{Value: 1.2, Low: 1, High: 1.2},
		},
		"of small differences, their mean": {Row{Mean: true}.Paired([]float64{3, 3, 3}, []float64{1, 2, 3}), Row{Mean: true, Value: 1.5, Low: 0.258, High: 2.742}},
		"the ratio of means":               {Row{Mean: true}.Ratio([]float64{1, 2, 9}, []float64{1, 4, 3}), Row{Mean: true, Value: 1.5, Low: 0.5, High: 3}},
	} {
		if diff := cmp.Diff(test.want, test.got, cmpopts.EquateApprox(0, 0.001)); diff != "" {
			t.Errorf("%s\n%s", why, diff)
		}
	}
	samples := []float64{3, 1, 2}
	if Median(samples); !slices.Equal(samples, []float64{3, 1, 2}) {
		t.Errorf("the samples are in another order: %v", samples)
	}
}
