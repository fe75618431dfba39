package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ensign-operator/ensign/internal/author/fix"
	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// absent is a collection or a Python library that is not installed, with all that needs it.
type absent struct {
	at    source.Position
	users []string
	fix   []*fix.Edit
}

type absences map[string]*absent

func (a absences) add(name, user string, at source.Position) {
	if a[name] == nil {
		a[name] = &absent{at: at}
	}
	a[name].users = append(a[name].users, user)
}

// absentees adds the collections and libraries that are not installed, each once.
func (p *Project) absentees() {
	for _, name := range slices.Sorted(maps.Keys(p.absentCollections)) {
		a := p.absentCollections[name]
		p.addFixable(finding{
			"missing-collection", report.Error, a.at, fmt.Sprintf("the collection %s, which has the %s, is not installed", name, few(a.users)),
			"a run that gets here fails", "add " + name + " to requirements.yml and install it with ansible-galaxy, or with pip as part of the image",
		}, a.fix)
	}
	for _, name := range slices.Sorted(maps.Keys(p.absentLibraries)) {
		a := p.absentLibraries[name]
		p.add(finding{
			"missing-library", report.Warning, a.at, fmt.Sprintf("the Python library %s is not installed, which is needed by the %s", name, few(a.users)),
			"the task fails in this Python environment, " + p.env.Bin, "add the library to the image: pip install " + name,
		})
	}
}
