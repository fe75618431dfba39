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

// in returns the rights that are needed in a role, which is that of leader election or another.
func (n Needs) in(leaseRole, hasLease bool) map[Right]bool {
	needed := map[Right]bool{}
	for _, need := range n.All {
		if leaseRole || !hasLease || need.Scope != Lease {
			needed[need.Right] = true
			needed[need.Or] = needed[need.Or] || need.Or != Right{}
		}
	}
	return needed
}

// Write writes the roles as YAML: rules in the order of groups and resources, each with where
// it comes from. Roles of scopes that has names are left out.
func (n Needs) Write(out io.Writer, name string, has map[Scope]string) error {
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
		if rules == "" || has[role.scope] != "" {
			continue
		}
		fmt.Fprintf(&text, "---\n# %s\n", role.what)
		fmt.Fprintf(&text, header, role.kind, role.name)
		text.WriteString(rules)
	}
	if rules := (Needs{All: n.Accounts}).rules(Manager); rules != "" {
		fmt.Fprintf(&text, "---\n# For the service accounts as which runs use the API: bind it to them in the namespaces of their resources.\n")
		fmt.Fprintf(&text, header, "ClusterRole", name+"-account")
		text.WriteString(rules)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// subject is the object or kind of rights.
type subject struct{ group, resource, name string }

func (s subject) right(verb string) Right { return Right{s.group, s.resource, verb, s.name} }

func (s subject) isPath() bool { return strings.HasPrefix(s.resource, "/") }

// subjects returns the subjects of the rights of some scopes, in order, the verbs for each, and for
// each place the verbs that are needed there.
func (n Needs) subjects(scopes ...Scope) (order []subject, verbs map[subject]map[string]bool, where map[subject]map[string][]string) {
	verbs, where = map[subject]map[string]bool{}, map[subject]map[string][]string{}
	for _, need := range n.All {
		if need.Elsewhere || !slices.Contains(scopes, need.Scope) {
			continue
		}
		k := need.subject()
		if verbs[k] == nil {
			verbs[k], where[k] = map[string]bool{}, map[string][]string{}
		}
		verbs[k][need.Verb] = true
		if !slices.Contains(where[k][need.Where], need.Verb) {
			where[k][need.Where] = append(where[k][need.Where], need.Verb)
		}
	}
	return slices.SortedFunc(maps.Keys(verbs), compareSubjects), verbs, where
}

func compareSubjects(a, b subject) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource), cmp.Compare(a.name, b.name))
}

func (n Needs) rules(scope Scope) string {
	keys, verbs, where := n.subjects(scope)
	var text strings.Builder
	for _, k := range keys {
		for _, line := range slices.Concat(comments(where[k]), ruleLines(k, slices.Collect(maps.Keys(verbs[k])))) {
			text.WriteString("  " + line + "\n")
		}
	}
	return text.String()
}

// ruleLines returns the lines of a rule.
func ruleLines(k subject, verbs []string) []string {
	lines := []string{fmt.Sprintf("- apiGroups: [%s]", quoted(k.group)), fmt.Sprintf("  resources: [%s]", quoted(k.resource))}
	switch {
	case k.isPath():
		lines = []string{fmt.Sprintf("- nonResourceURLs: [%s]", quoted(k.resource))}
	case k.name != "":
		lines = append(lines, fmt.Sprintf("  resourceNames: [%q]", k.name))
	}
	return append(lines, "  verbs: "+verbList(verbs))
}

// Items returns the rules of a role as items of its list, without the indentation and the dash, each
// below comments on where it comes from.
func (n Needs) Items() []string {
	keys, verbs, where := n.subjects(Manager)
	var items []string
	for _, k := range keys {
		all := slices.Collect(maps.Keys(verbs[k]))
		lines := ruleLines(k, all)
		for i := range lines {
			lines[i] = lines[i][len("- "):]
		}
		items = append(items, strings.Join(slices.Concat(placesOf(where[k], all), lines), "\n"))
	}
	return items
}

func verbList(verbs []string) string {
	var words []string
	for _, verb := range sorted(verbs) {
		words = append(words, quoted(verb))
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// comments lists where rights come from; of an audit log the first line for each verb.
func comments(where map[string][]string) []string {
	var lines []string
	audited := map[string]bool{}
	for _, place := range slices.SortedFunc(maps.Keys(where), compareNatural) {
		if strings.HasPrefix(place, "the audit log") {
			if audited[strings.Join(where[place], " ")] {
				continue
			}
			audited[strings.Join(where[place], " ")] = true
		}
		lines = append(lines, fmt.Sprintf("# %s: %s", strings.Join(sorted(where[place]), ", "), place))
	}
	return lines
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

func quoted(word string) string {
	if word == "" || strings.ContainsAny(word, "*") {
		return `"` + word + `"`
	}
	return word
}

// In returns the needs of a scope.
func (n Needs) In(scope Scope) Needs {
	return Needs{All: slices.DeleteFunc(slices.Clone(n.All), func(need Need) bool { return need.Scope != scope })}
}

// Lacking returns a line for each right that is needed and not given ("+").
func (n Needs) Lacking(g Granted) []string {
	var lines []string
	lacking := map[Right]bool{}
	for _, need := range n.All {
		if !lacking[need.Right] && !g.Gives(need) {
			lacking[need.Right] = true
			lines = append(lines, "+ "+need.String()+"  # "+need.Where)
		}
	}
	return lines
}

// Difference returns a line for each right that is needed and not given ("+"), and for each
// that is given and not needed ("-").
func (n Needs) Difference(g Granted) []string {
	lines := n.Lacking(g)
	for _, r := range g.surplus(n) {
		line := "- " + r.String()
		if at := g.at[r]; at.File != "" {
			line += fmt.Sprintf("  # %s:%d", at.File, at.Line)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}
