package rights

import (
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/author/source"
)

// Granted are the rights that roles in files give.
type Granted struct {
	Rights map[Right]bool
	// Roles are the positions of the roles, in the order of the files.
	Roles []source.Position
	// Unread are the ClusterRoles that a binding gives to a service account and that no file has, with
	// the positions of the bindings. Which rights they give is not known.
	Unread map[string]source.Position

	// kept are rights of rules with a comment "# keep": they need no reason.
	kept map[Right]bool
	at   map[Right]source.Position
	// wide are the rights without those of a role of leader election, which is for the manager's
	// own namespace. hasLease is set if there is one.
	wide     map[Right]bool
	hasLease bool
}

// ReadGranted reads the roles in the file, or in the YAML files below the directory. Where
// bindings are among them, only the roles that are bound to a service account count: others
// are for people.
func ReadGranted(path string) (Granted, error) {
	roles, _, bound, err := readRoles(path)
	return grantedBy(roles, bound), err
}

func grantedBy(roles []*role, bound map[string]source.Position) Granted {
	g := Granted{Rights: map[Right]bool{}, kept: map[Right]bool{}, at: map[Right]source.Position{}, wide: map[Right]bool{}, Unread: map[string]source.Position{}}
	isAll := !slices.ContainsFunc(roles, func(r *role) bool { return r.bound && !r.isLease() })
	for _, r := range roles {
		if !r.bound {
			continue
		}
		g.Roles = append(g.Roles, r.at)
		for _, one := range r.rules {
			for _, right := range one.rights() {
				wide := isAll || !r.isLease()
				if !g.Rights[right] || wide && !g.wide[right] { // An unneeded right is reported where it is given everywhere.
					g.at[right] = source.Position{File: r.at.File, Line: one.first}
				}
				g.Rights[right] = true
				g.wide[right] = g.wide[right] || wide
				g.hasLease = g.hasLease || !isAll && r.isLease()
				g.kept[right] = g.kept[right] || one.kept
			}
		}
	}
	g.ofCluster(roles, bound)
	return g
}

// ofCluster adds the ClusterRoles that are bound and that no file has.
func (g Granted) ofCluster(roles []*role, bound map[string]source.Position) {
	for key, at := range bound {
		kind, name, _ := strings.Cut(key, "/")
		if kind != "ClusterRole" || slices.ContainsFunc(roles, func(r *role) bool { return r.kind == kind && r.name == name }) {
			continue
		}
		rights, known := rightsOfBuiltIn[name]
		if !known {
			g.Unread[name] = at
		}
		for _, right := range rights {
			g.Rights[right], g.wide[right], g.kept[right], g.at[right] = true, true, true, at
		}
	}
}

// rightsOfBuiltIn are the rights of ClusterRoles that each cluster has, as far as they are the same in all.
//
//nolint:gochecknoglobals // A table.
var rightsOfBuiltIn = map[string][]Right{
	"cluster-admin": {{Group: "*", Resource: "*", Verb: "*"}, {Resource: "/*", Verb: "*"}},
	"system:auth-delegator": {
		{Group: "authentication.k8s.io", Resource: "tokenreviews", Verb: "create"}, {Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Verb: "create"},
	},
}

// builtInRole reports whether Kubernetes has a ClusterRole of the name.
func builtInRole(name string) bool {
	return strings.HasPrefix(name, "system:") || slices.Contains([]string{"cluster-admin", "admin", "edit", "view"}, name)
}

// Gives reports whether the roles, or other roles of the project, give the needed right where it is
// needed, also by "*".
func (g Granted) Gives(n Need) bool {
	if n.Elsewhere {
		return true
	}
	given := g.wide
	if n.Scope == Lease || n.Anywhere || given == nil {
		given = g.Rights
	}
	return covers(given, n.Right) || n.Or != Right{} && covers(given, n.Or)
}

// Alike returns the resource that the roles give in place of that of the need, where only its
// hyphens differ; "" if there is none.
func (g Granted) Alike(n Need) string {
	plain := func(resource string) string { return strings.ReplaceAll(resource, "-", "") }
	for right := range g.Rights {
		other := n
		other.Resource = right.Resource
		if right.Group == n.Group && right.Resource != n.Resource && plain(right.Resource) == plain(n.Resource) && g.Gives(other) {
			return right.Resource
		}
	}
	return ""
}

func covers(given map[Right]bool, r Right) bool {
	if r.Name != "" && covers(given, Right{Group: r.Group, Resource: r.Resource, Verb: r.Verb}) {
		return true
	}
	if r.subject().isPath() {
		return given[r] || given[Right{Resource: "/*", Verb: r.Verb}] || given[Right{Resource: r.Resource, Verb: "*"}] || given[Right{Resource: "/*", Verb: "*"}]
	}
	resources := []string{r.Resource, "*"}
	if _, sub, has := strings.Cut(r.Resource, "/"); has {
		resources = append(resources, "*/"+sub)
	}
	for _, group := range []string{r.Group, "*"} {
		for _, resource := range resources {
			if given[Right{group, resource, r.Verb, r.Name}] || given[Right{group, resource, "*", r.Name}] {
				return true
			}
		}
	}
	return false
}

// surplus returns the rights that are given and not needed, except kept ones.
func (g Granted) surplus(n Needs) []Right {
	var found []Right
	for r := range g.Rights {
		if !n.in(!g.wide[r], g.hasLease)[r] && !g.kept[r] {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b Right) int { return strings.Compare(a.String(), b.String()) })
	return found
}
