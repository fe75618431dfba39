package rights

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/author/source"
)

// role is a role in a file.
type role struct {
	kind, name string
	at         source.Position
	// bound is set if a service account has the role, as far as the files say it.
	bound bool
	// kept is set if a comment at the head of the file says that its roles stay as they are: another
	// program writes them.
	kept bool
	// list is the list of rules; nil if there is none.
	list  *yaml.Node
	rules []rule
}

// rule is an item of a role's list of rules.
type rule struct {
	node                     *yaml.Node
	groups, resources, verbs []string
	// names are the only objects that a rule to bind or to impersonate is about; nil for all.
	names []string
	// kept is set if a comment says that the rule stays, whatever the content needs.
	kept bool
	// narrow is set if the rule is for some names, other than one to bind or to impersonate, or repeats
	// another part of the file. It is not changed.
	narrow bool
	// comments are the lines above the rule. The rule has the lines from first to last.
	comments    []string
	first, last int
}

var (
	keepComment = regexp.MustCompile(`^\s*#\s*keep\b`)
	// placeComment matches the comments of the rules that this package writes.
	placeComment = regexp.MustCompile(`^\s*# (get|list|watch|create|update|patch|delete|deletecollection|bind|escalate|use|impersonate|approve|sign|\*)(, [a-z*]+)*: `)
)

// own reports whether this package wrote the rule from the needs of the content. A rule from an
// audit log is not known to the content, and counts as a person's.
func (r rule) own() bool {
	audited := slices.ContainsFunc(r.comments, func(line string) bool { return strings.Contains(line, ": the audit log") })
	return !r.narrow && !r.kept && !audited && len(r.groups) == 1 && len(r.resources) == 1 && len(r.writtenVerbs()) > 0
}

// writtenVerbs returns the verbs for which the comments name a place.
func (r rule) writtenVerbs() map[string]bool {
	verbs := map[string]bool{}
	for _, line := range r.comments {
		if placeComment.MatchString(line) {
			words, _, _ := strings.Cut(strings.TrimLeft(line, " #"), ":")
			for verb := range strings.SplitSeq(words, ", ") {
				verbs[verb] = true
			}
		}
	}
	return verbs
}

// is reports whether the rule is about the subject alone, and may be changed.
func (r rule) is(k subject) bool {
	return !r.narrow && slices.Equal(r.groups, []string{k.group}) && slices.Equal(r.resources, []string{k.resource}) && r.name() == k.name
}

// name is the one object that the rule is about; "" for all.
func (r rule) name() string {
	if len(r.names) == 1 {
		return r.names[0]
	}
	return ""
}

func (r rule) rights() []Right {
	var all []Right
	names := r.names
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range r.groups {
		for _, resource := range r.resources {
			for _, verb := range r.verbs {
				for _, name := range names {
					all = append(all, Right{group, resource, verb, name})
				}
			}
		}
	}
	return all
}

// readRoles reads the roles in the file, or in the YAML files below the directory, and the lines
// of the files. It also returns the roles that bindings give to a service account, as KIND/NAME, with the
// positions of the bindings.
func readRoles(path string) (roles []*role, files map[string][]string, bound map[string]source.Position, err error) {
	files, bound = map[string][]string{}, map[string]source.Position{}
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, nil, err
	}
	paths := []string{path}
	if info.IsDir() {
		if paths, err = source.FilesBelow(path, ".yaml", ".yml"); err != nil {
			return nil, nil, nil, err
		}
	}
	for _, file := range paths {
		text, err := os.ReadFile(file)
		if err != nil {
			return roles, files, bound, err
		}
		files[file] = strings.Split(strings.TrimRight(string(text), "\n"), "\n")
		documents, fault := source.ReadYAML(file)
		if fault != nil {
			return roles, files, bound, fmt.Errorf("%s: %s", fault.Position, fault.Message)
		}
		for _, d := range documents {
			switch kind := source.Scalar(d, "kind"); kind {
			case "Role", "ClusterRole":
				roles = append(roles, newRole(kind, d, file, files[file]))
			case "RoleBinding", "ClusterRoleBinding":
				if ref := source.Field(d, "roleRef"); forAccount(source.Field(d, "subjects")) {
					bound[source.Scalar(ref, "kind")+"/"+source.Scalar(ref, "name")] = source.Place(file, d)
				}
			}
		}
	}
	for _, r := range roles {
		_, named := bound[r.kind+"/"+r.name]
		r.bound = len(bound) == 0 || named
	}
	return roles, files, bound, nil
}

func newRole(kind string, document *yaml.Node, file string, lines []string) *role {
	r := &role{
		kind: kind, name: source.Scalar(document, "metadata", "name"),
		at: source.Place(file, document), list: source.Field(document, "rules"),
		kept: slices.ContainsFunc(commentsAtHead(lines), keepComment.MatchString),
	}
	if r.list == nil {
		return r
	}
	for i, n := range r.list.Content {
		one := rule{
			node: n, groups: list(n, "apiGroups"), resources: list(n, "resources"), verbs: list(n, "verbs"),
			narrow: source.Field(n, "resourceNames") != nil || hasAlias(n), first: n.Line,
		}
		if names := list(n, "resourceNames"); slices.Equal(one.verbs, []string{"bind"}) || slices.Equal(one.verbs, []string{"impersonate"}) {
			one.names, one.narrow = names, len(names) > 1 || hasAlias(n)
		}
		if paths := list(n, "nonResourceURLs"); len(paths) > 0 {
			one.groups, one.resources = []string{""}, rooted(paths)
		}
		end := len(lines)
		if i+1 < len(r.list.Content) {
			end = r.list.Content[i+1].Line - 1
		}
		one.last = source.LastLine(lines, n.Line, end, r.list.Column)
		for number := n.Line - 1; number > r.at.Line && strings.HasPrefix(strings.TrimLeft(lines[number-1], " "), "#"); number-- {
			one.comments = append([]string{lines[number-1]}, one.comments...)
		}
		one.kept = r.kept || slices.ContainsFunc(one.comments, keepComment.MatchString)
		r.rules = append(r.rules, one)
	}
	return r
}

// rooted writes the path that means all of them as one with a slash, which means the same.
func rooted(paths []string) []string {
	all := slices.Clone(paths)
	for i, path := range all {
		all[i] = "/" + strings.TrimPrefix(path, "/")
	}
	return all
}

// commentsAtHead returns the comments before the first line of YAML.
func commentsAtHead(lines []string) []string {
	end := slices.IndexFunc(lines, func(line string) bool { return line != "" && !strings.HasPrefix(line, "#") })
	return lines[:max(end, 0)]
}

func hasAlias(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || slices.ContainsFunc(n.Content, hasAlias)
}

// isMetrics reports whether the role is the one by which the metrics endpoint asks who a client is.
func (r *role) isMetrics() bool {
	asks := false
	for _, one := range r.rules {
		for _, group := range one.groups {
			if group != "authentication.k8s.io" && group != "authorization.k8s.io" {
				return false
			}
			asks = true
		}
	}
	return asks
}

// isLease reports whether the role is the one of leader election.
func (r *role) isLease() bool {
	return r.kind == "Role" && (strings.Contains(r.name, "leader-election") || slices.ContainsFunc(r.rules, func(one rule) bool { return slices.Contains(one.groups, "coordination.k8s.io") }))
}

// givesMore reports whether a role of leader election is for something else, too.
func (r *role) givesMore() bool {
	return slices.ContainsFunc(r.rules, func(one rule) bool {
		return slices.ContainsFunc(one.groups, func(group string) bool { return group != "" && group != "coordination.k8s.io" })
	})
}

// fits reports whether the role is one of the scope.
func (r *role) fits(scope Scope) bool {
	switch scope {
	case Metrics:
		return r.kind == "ClusterRole" && r.isMetrics()
	case Lease:
		return r.isLease()
	default:
		return !r.isLease() && !r.isMetrics()
	}
}

// roleOf returns the role of a scope; nil if there is none. Several that may be the manager's are
// an error, if the name is that of none of them.
func roleOf(scope Scope, roles []*role, name string) (*role, error) {
	own := slices.DeleteFunc(slices.Clone(roles), func(r *role) bool { return r.kept })
	fit := boundWhere(own, func(r *role) bool { return r.fits(scope) })
	if scope == Manager && len(fit) == 0 { // One role for all.
		fit = boundWhere(own, func(r *role) bool { return !r.isMetrics() && r.givesMore() })
	}
	switch named := slices.IndexFunc(fit, func(r *role) bool { return r.name == name }); {
	case len(fit) == 0:
		return nil, nil //nolint:nilnil // There is none.
	case named >= 0:
		return fit[named], nil
	case len(fit) > 1 && scope == Manager:
		var names []string
		for _, r := range fit {
			names = append(names, r.name)
		}
		return nil, fmt.Errorf("the service account has several roles (%s): say by --name which one gets the rights", strings.Join(names, ", "))
	}
	return fit[0], nil
}

func boundWhere(roles []*role, holds func(*role) bool) []*role {
	return slices.DeleteFunc(slices.Clone(roles), func(r *role) bool { return !r.bound || !holds(r) })
}

func forAccount(subjects *yaml.Node) bool {
	return slices.ContainsFunc(source.Items(subjects), func(s *yaml.Node) bool { return source.Scalar(s, "kind") == "ServiceAccount" })
}

func list(n *yaml.Node, key string) []string {
	var found []string
	for _, v := range source.Items(source.Field(n, key)) {
		found = append(found, source.Scalar(v))
	}
	return found
}
