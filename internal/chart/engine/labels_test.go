package engine

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestChartLabel(t *testing.T) {
	for chart, want := range map[[2]string]string{
		{"hello", "0.1.0"}:                      "hello-0.1.0",
		{"hello", "0.1.0+build.5"}:              "hello-0.1.0_build.5",
		{"_hello world", "1.0.0"}:               "hello_world-1.0.0",
		{strings.Repeat("a", 60), "1.0.0"}:      strings.Repeat("a", 60) + "-1",
		{strings.Repeat("a", 62), "1.0.0"}:      strings.Repeat("a", 62),
		{strings.Repeat("\u00e4", 60), "1.0.0"}: "1.0.0",
	} {
		got := chartLabel(chart[0], chart[1])
		if got != want && chart[0][0] < 0x80 || len(validation.IsValidLabelValue(got)) > 0 {
			t.Errorf("%q: got %q, want %q", chart, got, want)
		}
	}
}
