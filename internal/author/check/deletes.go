package check

import (
	"slices"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// deletes adds tasks that delete objects whoever they belong to. A task that expects a UID has
// looked at the object before.
func (p *Project) deletes(u *Unit) {
	for _, t := range u.Tasks {
		expected := source.Field(t.Arg("delete_options"), "preconditions")
		if rights.Module(t) != "k8s" || !slices.Contains(rights.States(u.Unit, u.Index, t), "absent") || source.Field(expected, "uid") != nil {
			continue
		}
		by := "name"
		switch {
		case t.Arg("label_selectors") != nil:
			by = "label"
		case source.True(t.Arg("delete_all")):
			by = "kind"
		}
		p.add(finding{
			"unowned-delete", report.Warning, t.Position, "this deletes by " + by + " whatever it finds, whoever it belongs to",
			"a Helm release, or another resource, may have an object of that " + by, "use ensign.operator.k8s_delete_owned, which checks the owner",
		})
	}
}
