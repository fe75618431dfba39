package watches

import "gopkg.in/yaml.v3"

// health returns the parser of health: a boolean, or a mapping with what it ignores.
func (p *parser) health(d *rawWatch) fieldParser {
	return func(field string, n *yaml.Node) {
		health := &Health{}
		if followAlias(n).Kind != yaml.MappingNode {
			var on bool
			if p.boolean(&on)(field, n); on {
				d.Health = health
			}
			return
		}
		d.Health = health
		p.mapping("health", map[string]fieldParser{"ignore": p.list(func(field string, n *yaml.Node) {
			var kind, name textField
			p.mapping("a kind of children", map[string]fieldParser{"kind": p.text(&kind), "name": p.text(&name)})(field, n)
			p.required("kind", kind, n.Line, "PersistentVolumeClaim")
			health.Ignore = append(health.Ignore, KindName{Kind: kind.text, Name: name.text})
		})})(field, n)
	}
}

// checkHealth refuses health of children that are not watched.
func (p *parser) checkHealth(d *rawWatch) {
	if d.Health != nil && !d.WatchDependentResources {
		p.addFault(d.lines["health"], "health needs the children that watchDependentResources: false does not watch; remove one of the two")
	}
	if d.Health != nil && !d.ManageStatus {
		p.addFault(d.lines["health"], "health is shown in the status, which manageStatus: false does not write; remove one of the two")
	}
}
