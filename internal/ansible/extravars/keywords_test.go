package extravars

import (
	"slices"
	"testing"
)

func TestKeywordsAreFound(t *testing.T) {
	if !slices.IsSorted(keywords()) {
		t.Error("they are not sorted")
	}
	for _, name := range keywords() {
		if !IsKeyword(name) {
			t.Errorf("%s is not found", name)
		}
	}
	if IsKeyword("service_port") {
		t.Error("service_port is not reserved")
	}
}
