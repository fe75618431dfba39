package action

import (
	"errors"
	"strings"
	"testing"
)

func TestHelmsRefusalOfAnObjectNamesAdopt(t *testing.T) {
	const refusal = `Unable to continue with install: ConfigMap "a" in namespace "b" exists and cannot be imported into the current release: invalid ownership metadata; `
	for text, want := range map[string]bool{
		refusal + `annotation validation error: missing key "meta.helm.sh/release-name": must be set to "a"`:              true,
		refusal + `annotation validation error: key "meta.helm.sh/release-name" must equal "a": current value is "other"`: false,
		`missing key "meta.helm.sh/release-name"`: false,
	} {
		cause := errors.New(text)
		if got := withRemedy(cause); strings.Contains(got.Error(), "adopt: true in the watch") != want || !errors.Is(got, cause) {
			t.Errorf("got %v", got)
		}
	}
	if withRemedy(nil) != nil {
		t.Error("no error became one")
	}
}
