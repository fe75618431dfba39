package cli

import (
	"regexp"
	"strings"
	"testing"
)

// TestTheEnvironmentIsATable: each line of the list begins a variable, or continues the column of texts.
func TestTheEnvironmentIsATable(t *testing.T) {
	_, list, _ := strings.Cut(environmentHelp, "Environment:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.Lines(list + "\n") {
		if !regexp.MustCompile(`^(  [A-Z]\S*.*|\s{45}\S.*|)\n$`).MatchString(line) {
			t.Errorf("%q", line)
		}
	}
}
