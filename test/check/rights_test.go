package check

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/author/check"
	"github.com/ensign-operator/ensign/internal/author/rights"
)

// test/deploy shows that these, and those of config/rbac, are what a full run uses.
func TestTheRightsOfTheProjectAreThoseOfItsRoles(t *testing.T) {
	o := options(t, "../..")
	p, err := check.Load(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	granted, err := rights.ReadGranted(filepath.Join(o.Dir, "config", "rbac"))
	if err != nil {
		t.Fatal(err)
	}
	needs := p.Needs()
	if len(needs.Unknown) > 0 || len(granted.Roles) != 3 {
		t.Errorf("got the unknown needs %+v, and the roles %v", needs.Unknown, granted.Roles)
	}
	if diff := cmp.Diff(granted.Rights, needs.Rights()); diff != "" {
		t.Errorf("rights (-config/rbac +needed):\n%s", diff)
	}
}
