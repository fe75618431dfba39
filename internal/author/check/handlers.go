package check

import (
	"maps"
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/suggest"
)

// handlers adds handlers that are notified and not there. Where a name, or an include, depends on
// variables, nothing is said.
func (p *Project) handlers(u *Unit) {
	if len(u.Unknown) > 0 {
		return
	}
	there := map[string]bool{}
	for _, t := range u.Tasks {
		there[t.Name] = true
		for _, name := range source.Each(t.Keys["listen"]) {
			there[name.Value] = true
		}
		if strings.Contains(t.Name, "{{") {
			return
		}
	}
	for _, t := range u.Tasks {
		for _, name := range source.Each(t.Keys["notify"]) {
			_, plain, ofRole := strings.Cut(name.Value, " : ")
			if !there[name.Value] && !(ofRole && there[plain]) && !strings.Contains(name.Value, "{{") {
				p.add(finding{
					"missing-handler", report.Warning, source.Place(t.File, name), "there is no handler " + name.Value + suggest.DidYouMean(name.Value, slices.Sorted(maps.Keys(there))),
					"the task fails once it changes something", "correct the name, or add the handler to handlers/main.yml",
				})
			}
		}
	}
}
