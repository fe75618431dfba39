package rights

import (
	"regexp"
	"strings"

	"github.com/ensign-operator/ensign/internal/author/source"
)

var noOwners = regexp.MustCompile(`^\s+["']?ownerReferences["']?:\s*(?:null|~|\[\s*\])\s*(?:#.*)?$`)

var topLevel = regexp.MustCompile(`^(kind|apiVersion):\s*["']?([A-Za-z0-9./]+)["']?\s*(#.*)?$`)

// InText returns the objects in YAML text with templates: of each document the lines kind and
// apiVersion at its top.
func InText(text string, at source.Position) []Object {
	var found []Object
	o, kept := Object{Position: at, Template: true}, false
	flush := func() {
		o.Disowned, kept = o.Disowned && !kept, false
		if o.Kind != "" && o.APIVersion != "" {
			found = append(found, o)
		}
		o = Object{Position: at, Template: true}
	}
	for n, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "---") {
			flush()
		}
		o.Disowned, kept = o.Disowned || noOwners.MatchString(line), kept || strings.Contains(line, keep)
		switch match := topLevel.FindStringSubmatch(strings.TrimRight(line, " \r")); {
		case match == nil:
		case match[1] == "kind":
			o.Kind = match[2]
			if at.Line == 1 && at.Column == 1 {
				o.Line = n + 1
			}
		default:
			o.APIVersion = match[2]
		}
	}
	flush()
	return found
}
