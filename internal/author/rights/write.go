package rights

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// order is that in which roles list verbs.
var order = strings.Fields("get list watch create update patch delete deletecollection") //nolint:gochecknoglobals // A constant.

const header = `apiVersion: rbac.authorization.k8s.io/v1
kind: %s
metadata:
  name: %s
rules:
`

// Rights returns all rights, each once.
func (n Needs) Rights() map[Right]bool {
	all := map[Right]bool{}
	for _, need := range n.All {
		all[need.Right] = true
	}
	return all
}

// Write writes the roles as YAML: rules in the order of groups and resources, each with where
// it comes from.
func (n Needs) Write(out io.Writer, name string) error {
	var text strings.Builder
	for _, role := range []struct {
		scope            Scope
		kind, name, what string
	}{
		{Manager, "ClusterRole", name, "What the manager does itself, and what its content does through it."},
		{Metrics, "ClusterRole", "metrics-auth", "The metrics endpoint asks the API server who a client is and what it may read."},
		{Lease, "Role", "leader-election", "In the manager's own namespace only: give it one."},
	} {
		rules := n.rules(role.scope)
		if rules == "" {
			continue
		}
		fmt.Fprintf(&text, "---\n# %s\n", role.what)
		fmt.Fprintf(&text, header, role.kind, role.name)
		text.WriteString(rules)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func (n Needs) rules(scope Scope) string {
	type key struct{ group, resource string }
	verbs := map[key]map[string]bool{}
	where := map[key]map[string][]string{}
	for _, need := range n.All {
		if need.Scope != scope {
			continue
		}
		k := key{need.Group, need.Resource}
		if verbs[k] == nil {
			verbs[k], where[k] = map[string]bool{}, map[string][]string{}
		}
		verbs[k][need.Verb] = true
		if !slices.Contains(where[k][need.Where], need.Verb) {
			where[k][need.Where] = append(where[k][need.Where], need.Verb)
		}
	}
	keys := slices.SortedFunc(maps.Keys(verbs), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource))
	})
	var text strings.Builder
	for _, k := range keys {
		text.WriteString(comments(where[k]))
		fmt.Fprintf(&text, "  - apiGroups: [%s]\n    resources: [%s]\n    verbs: [%s]\n", quoteEmpty(k.group), k.resource, strings.Join(sorted(slices.Collect(maps.Keys(verbs[k]))), ", "))
	}
	return text.String()
}

// comments lists where rights come from; of an audit log the first line for each verb.
func comments(where map[string][]string) string {
	var text strings.Builder
	audited := map[string]bool{}
	for _, place := range slices.SortedFunc(maps.Keys(where), compareNatural) {
		if strings.HasPrefix(place, "the audit log") {
			if audited[strings.Join(where[place], " ")] {
				continue
			}
			audited[strings.Join(where[place], " ")] = true
		}
		fmt.Fprintf(&text, "  # %s: %s\n", strings.Join(sorted(where[place]), ", "), place)
	}
	return text.String()
}

// compareNatural puts shorter texts first, so that line 9 comes before line 10.
func compareNatural(a, b string) int {
	return cmp.Or(cmp.Compare(strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func sorted(verbs []string) []string {
	return slices.SortedFunc(slices.Values(verbs), func(a, b string) int {
		return cmp.Or(cmp.Compare(index(a), index(b)), cmp.Compare(a, b))
	})
}

func index(verb string) int {
	if i := slices.Index(order, verb); i >= 0 {
		return i
	}
	return len(order)
}

func quoteEmpty(group string) string {
	if group == "" {
		return `""`
	}
	return group
}

// Difference returns a line for each right that is needed and not given ("+"), and for each
// that is given and not needed ("-").
func (n Needs) Difference(g Granted) []string {
	needed := n.Rights()
	where := map[Right]string{}
	for _, need := range n.All {
		where[need.Right] = cmp.Or(where[need.Right], need.Where)
	}
	var lines []string
	for r := range needed {
		if !g.Covers(r) {
			lines = append(lines, "+ "+r.String()+"  # "+where[r])
		}
	}
	for r := range g.Rights {
		if !needed[r] {
			lines = append(lines, "- "+r.String())
		}
	}
	slices.Sort(lines)
	return lines
}
