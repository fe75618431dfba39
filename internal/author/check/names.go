package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// keyless are filters and methods whose result has no keys of a map.
//
//nolint:gochecknoglobals // A constant.
var keyless = strings.Fields("length count bool hash checksum md5 sha1 type_debug .values")

// convertedKeys adds maps of the spec whose keys the resource chooses, where the content uses them as a
// whole: each key arrives converted. One finding for each map, at the first use.
func (p *Project) convertedKeys(u *Unit) {
	seen := map[string]bool{}
	for _, t := range u.Texts {
		if t.Analysis.Error != "" || t.Bare || slices.Contains(conditions, t.Where) {
			continue
		}
		for _, output := range t.Analysis.Outputs {
			for _, flow := range output.Flows {
				for _, s := range u.Sources(flow, t.Task) {
					path := u.Variables.FreeMap(s.Name, s.Path)
					written := strings.ReplaceAll(strings.Join(path, "."), ".[]", "[]")
					if path == nil || seen[written] || slices.ContainsFunc(s.Filters, func(f string) bool { return slices.Contains(keyless, f) }) {
						continue
					}
					seen[written] = true
					p.add(finding{
						"converted-keys", report.Warning, t.At(output.Line),
						fmt.Sprintf("spec.%s of %s (%s) is a map with any keys, and they are converted: maxConns arrives as max_conns, my-label as my_label",
							written, u.Watch.GVK.Kind, p.at(u.Variables.File, u.Variables.Keys[s.Name].Line)),
						"what the content writes has other keys than the resource", fmt.Sprintf("read %s.%s, which has the keys as they are written, or set snakeCaseParameters: false", u.Variables.Whole()[1], written),
					})
				}
			}
		}
	}
}

// reservedNames adds options of roles by names that Ansible keeps for itself: ansible-lint refuses them in the
// defaults, which create api writes from the argument specs.
func (p *Project) reservedNames(u *Unit) {
	add := func(name, what string, at source.Position) {
		if schema.Reserved(name) {
			p.add(finding{
				"reserved-name", report.Warning, at, fmt.Sprintf("%s has the name %s, which Ansible or Python reserves", what, name),
				"ansible-lint refuses it (var-naming), and Ansible warns in each run; a template may mean something else by it", "choose another name, for example with the role's name as prefix",
			})
		}
	}
	for _, d := range u.Definitions {
		if d.How == source.Default || d.How == source.RoleVar {
			add(d.Name, string(d.How), d.Position)
		}
	}
	for _, dir := range u.directories() {
		specs, file := readSpecs(dir)
		for _, spec := range specs {
			for name := range source.Pairs(source.Field(spec, "options")) {
				add(name.Value, "an option of the role", source.Place(file, name))
			}
		}
	}
}
