package rights

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/author/source"
)

// Project are the roles that the files of a project give its manager.
type Project struct {
	roles []*role
	files map[string][]string
	edits []edit
	// Name is that of the manager's role, "" if there is none yet. Has has the place of the role of
	// each other scope.
	Name string
	Has  map[Scope]string
	// Granted are the rights that the roles give.
	Granted Granted
}

// ReadProject reads the roles in a directory such as config/rbac. name says which one is the
// manager's, where the files leave a choice.
func ReadProject(dir, name string) (*Project, error) {
	roles, files, bound, err := readRoles(dir)
	if err != nil {
		return nil, err
	}
	p := &Project{roles: roles, files: files, Has: map[Scope]string{}, Granted: grantedBy(roles, bound), Name: name}
	for _, scope := range []Scope{Metrics, Lease} {
		if r, _ := roleOf(scope, roles, ""); r != nil {
			p.Has[scope] = r.at.File
		}
	}
	r, several := roleOf(Manager, roles, name)
	switch {
	case r != nil:
		p.Name = r.name
	case name == "" && several == nil:
		p.Name = absent(roles, bound)
	}
	return p, nil
}

// absent returns the name of the one role that a binding names and no file has, such as one that a
// shell has emptied for the output; "" if there is not exactly one.
func absent(roles []*role, bound map[string]source.Position) string {
	for _, r := range roles {
		delete(bound, r.kind+"/"+r.name)
	}
	for key := range bound {
		if kind, name, _ := strings.Cut(key, "/"); len(bound) == 1 && kind == "ClusterRole" && !builtInRole(name) {
			return name
		}
	}
	return ""
}

// Update plans the edits by which the roles give the needed rights. It adds verbs and rules. From
// the rules that Update, Write or create api wrote, it removes the verbs that are in their comments
// and no longer needed; from all other rules only if prune is set. With onlyAdd it removes nothing.
// Update returns sentences on the edits that it could not make.
func (p *Project) Update(n Needs, prune, onlyAdd bool) (notes []string, err error) {
	managers, err := roleOf(Manager, p.roles, p.Name)
	if err != nil {
		return nil, err
	}
	if managers == nil {
		return nil, errors.New("no role here is bound to a service account, so that none can get the rights: init writes role.yaml and role_binding.yaml into a new project")
	}
	u := update{Project: p, needs: n, prune: prune, onlyAdd: onlyAdd, done: map[*yaml.Node]bool{}}
	targets, scopes := []*role{managers}, map[*role][]Scope{managers: {Manager}}
	for scope, what := range map[Scope]string{Metrics: "metrics", Lease: "leader election"} {
		target, _ := roleOf(scope, p.roles, "")
		if target == nil {
			if keys, _, _ := n.subjects(scope); len(keys) > 0 {
				notes = append(notes, fmt.Sprintf("no role here is for %s, so its rights were not written: init writes such a role and its binding into a new project", what))
			}
			continue
		}
		if scopes[target] == nil {
			targets = append(targets, target)
		}
		scopes[target] = append(scopes[target], scope)
	}
	for _, target := range targets {
		if err := u.add(n, scopes[target], target); err != nil {
			return nil, err
		}
	}
	for _, r := range p.roles {
		if r.bound {
			u.trim(r)
		}
	}
	slices.Sort(notes)
	return notes, nil
}

// update is a run of Update.
type update struct {
	*Project

	needs          Needs
	prune, onlyAdd bool
	// done are the rules that have an edit.
	done map[*yaml.Node]bool
}

// add plans the rules of some scopes that lack rights, in their role.
func (u update) add(n Needs, scopes []Scope, target *role) error {
	stay := u.stay(target)
	keys, verbs, where := n.subjects(scopes...)
	var added []string
	for _, k := range keys {
		all := slices.Collect(maps.Keys(verbs[k]))
		i := slices.IndexFunc(target.rules, func(one rule) bool { return one.is(k) })
		if i >= 0 && target.rules[i].own() && !u.onlyAdd {
			u.renew(target, target.rules[i], k, all, where[k])
			u.drop(target, target.rules[i+1:], k)
			continue
		}
		lacking := slices.DeleteFunc(slices.Clone(all), func(verb string) bool { return covers(stay, k.right(verb)) })
		switch {
		case len(lacking) == 0:
		case i >= 0:
			u.done[target.rules[i].node] = true
			u.setVerbs(target, target.rules[i], append(u.left(target, target.rules[i])[k], lacking...))
		default:
			added = slices.Concat(added, placesOf(where[k], all), ruleLines(k, all))
		}
	}
	return u.append(target, added)
}

// stay returns the rights of roles from rules that are not rewritten.
func (u update) stay(target *role) map[Right]bool {
	given := map[Right]bool{}
	for _, r := range u.roles {
		if !r.bound || r != target && r.isLease() && !u.onlyAdd {
			continue // It is for one namespace.
		}
		for _, one := range r.rules {
			for k, verbs := range u.left(r, one) {
				for _, verb := range verbs {
					given[k.right(verb)] = true
				}
			}
		}
	}
	return given
}

// left returns the rights that a rule still gives after the update, without those that it gets by
// it.
func (u update) left(r *role, one rule) map[subject][]string {
	verbs := map[subject][]string{}
	needed := u.needs.in(r.isLease(), u.Granted.hasLease)
	written := one.writtenVerbs()
	for _, right := range one.rights() {
		takes := u.prune || one.own() && written[right.Verb]
		if needed[right] || !takes || one.narrow || one.kept || u.onlyAdd {
			k := right.subject()
			verbs[k] = append(verbs[k], right.Verb)
		}
	}
	return verbs
}

// renew plans a rule that this package wrote, with its comments. Text of a person stays.
func (u update) renew(target *role, one rule, k subject, verbs []string, where map[string][]string) {
	u.done[one.node] = true
	for _, verb := range u.left(target, one)[k] {
		if !slices.Contains(verbs, verb) {
			verbs = append(verbs, verb)
		}
	}
	lines := slices.DeleteFunc(slices.Clone(one.comments), placeComment.MatchString)
	lines = append(lines, indented(target.list.Column-1, slices.Concat(placesOf(where, verbs), ruleLines(k, verbs)))...)
	u.edits = append(u.edits, edit{target.at.File, one.first - len(one.comments), one.last, lines})
}

// drop plans the removal of further rules that this package wrote about the subject.
func (u update) drop(target *role, others []rule, k subject) {
	for _, one := range others {
		written := one.writtenVerbs()
		if one.is(k) && one.own() && !slices.ContainsFunc(one.verbs, func(verb string) bool { return !written[verb] }) {
			u.done[one.node] = true
			u.edits = append(u.edits, edit{target.at.File, one.first - len(one.comments), one.last, nil})
		}
	}
}

// trim plans the removal of rights that are not needed.
func (u update) trim(r *role) {
	for _, one := range r.rules {
		left := u.left(r, one)
		count := 0
		for _, verbs := range left {
			count += len(verbs)
		}
		switch {
		case u.done[one.node], count == len(one.rights()):
		case count == 0:
			u.edits = append(u.edits, edit{r.at.File, one.first - len(one.comments), one.last, nil})
		default:
			u.reduce(r, one, left)
		}
	}
}

// reduce plans a rule that gives no more than these rights.
func (u update) reduce(r *role, one rule, left map[subject][]string) {
	keys := slices.SortedFunc(maps.Keys(left), compareSubjects)
	same := len(keys) == len(one.groups)*len(one.resources)
	for _, k := range keys {
		same = same && slices.Equal(sorted(left[k]), sorted(left[keys[0]]))
	}
	if same {
		u.setVerbs(r, one, left[keys[0]])
		return
	}
	var lines []string
	for _, k := range keys {
		lines = append(lines, ruleLines(k, left[k])...)
	}
	u.edits = append(u.edits, edit{r.at.File, one.first, one.last, indented(r.list.Column-1, lines)})
}

// linesOfPlaces matches the line of a place. Comments that stay in files leave it out, because it
// would be wrong after the next change of that place.
var linesOfPlaces = regexp.MustCompile(`:\d+$|, line \d+$| on line \d+ of`)

// placesOf returns the comments of a rule with these verbs.
func placesOf(where map[string][]string, verbs []string) []string {
	short := map[string][]string{}
	for place, needed := range where {
		place = linesOfPlaces.ReplaceAllStringFunc(place, func(match string) string {
			if strings.HasSuffix(match, "of") {
				return " in"
			}
			return ""
		})
		for _, verb := range needed {
			if slices.Contains(verbs, verb) && !slices.Contains(short[place], verb) {
				short[place] = append(short[place], verb)
			}
		}
	}
	maps.DeleteFunc(short, func(_ string, verbs []string) bool { return len(verbs) == 0 })
	return comments(short)
}
