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
	roles, _, _, err := readRoles(path)
	return grantedBy(roles), err
}

func grantedBy(roles []*role) Granted {
	g := Granted{Rights: map[Right]bool{}, kept: map[Right]bool{}, at: map[Right]source.Position{}, wide: map[Right]bool{}}
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
	return g
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
