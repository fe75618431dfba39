package objects

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVersionsThatHaveGone(t *testing.T) {
	for text, want := range map[string][]string{
		"server-side apply failed for object s/a: request to convert CR to an invalid group/version: mo.example.com/v1alpha1":  {"mo.example.com/v1alpha1"},
		"to an invalid group/version: mo.example.com/v1alpha1; and the rollback failed: to an invalid group/version: a.io/v2.": {"mo.example.com/v1alpha1", "a.io/v2"},
		`ConfigMap "a" is invalid: data`: nil,
	} {
		if diff := cmp.Diff(want, unservedVersions(errors.New(text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}
