package watches

import (
	"time"

	"gopkg.in/yaml.v3"
)

// defaultGrace is that of health: every scale-up by an autoscaler makes a child InProgress for a moment.
const defaultGrace = 10 * time.Second

// health returns the parser of health: a boolean, or a mapping with its settings.
func (p *parser) health(d *rawWatch) fieldParser {
	return func(field string, n *yaml.Node) {
		health := &Health{Grace: defaultGrace}
		if followAlias(n).Kind != yaml.MappingNode {
			var on bool
			if p.boolean(&on)(field, n); on {
				d.Health = health
			}
			return
		}
		d.Health = health
		p.mapping("health", map[string]fieldParser{"grace": p.duration(&health.Grace), "ignore": p.list(func(field string, n *yaml.Node) {
			var kind, name textField
			p.mapping("a kind of children", map[string]fieldParser{"kind": p.text(&kind), "name": p.text(&name)})(field, n)
			p.required("kind", kind, n.Line, "PersistentVolumeClaim")
			health.Ignore = append(health.Ignore, KindName{Kind: kind.text, Name: name.text})
		})})(field, n)
	}
}

// checkHealth refuses health and statusFrom where children are not watched, or the status is not managed.
func (p *parser) checkHealth(d *rawWatch) {
	for _, field := range []string{"health", "statusFrom"} {
		if d.Health == nil && field == "health" || d.StatusFrom == nil && field == "statusFrom" {
			continue
		}
		if !d.WatchDependentResources {
			p.addFault(d.lines[field], "%s needs the children that watchDependentResources: false does not watch; remove one of the two", field)
		}
		if !d.ManageStatus {
			p.addFault(d.lines[field], "%s is shown in the status, which manageStatus: false does not write; remove one of the two", field)
		}
	}
}
