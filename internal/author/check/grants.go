package check

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// Needs returns the rights that the project needs. Places in it are relative to the project.
func (p *Project) Needs() rights.Needs {
	c := rights.Collector{CRDs: p.CRDs}
	c.Engine()
	for _, u := range p.Units {
		c.Unit(u.Unit, u.Index)
		u.backend.needs(&c, u)
	}
	for _, needs := range [][]rights.Need{c.All, c.Accounts} {
		for i, need := range needs {
			needs[i].Where = strings.ReplaceAll(need.Where, p.options.Dir+string(filepath.Separator), "")
		}
	}
	if granted, err := rights.ReadGranted(filepath.Join(p.options.Dir, "config", "overlays", "jobs", "runs")); err == nil {
		c.InOverlay(granted)
	}
	return c.Needs
}

// grants adds rights that the content needs and config/rbac does not give.
func (p *Project) grants() {
	dir := filepath.Join(p.options.Dir, "config", "rbac")
	if _, err := os.Stat(dir); err != nil {
		return
	}
	granted, err := rights.ReadGranted(dir)
	if err != nil {
		p.add(finding{
			"rbac", report.Error, source.Position{File: dir}, "the roles cannot be read: " + err.Error(),
			"kustomize refuses the files too", "correct the file",
		})
		return
	}
	p.unlisted(dir, granted)
	missing, _ := p.lacking(p.Needs().All, func(need rights.Need) ([]string, error) {
		if granted.Gives(need) {
			return nil, nil
		}
		return []string{need.Right.String()}, nil
	})
	for _, l := range missing {
		l.unread, l.alike = p.unread(granted), p.alike(granted, l.needs)
		who := "the task needs"
		if l.at.File == p.watchesFile {
			who = "the manager needs"
		}
		p.lacks(l, "missing-right", who+" rights that no role in config/rbac gives: ", "; so do ", "add them to config/rbac/role.yaml, or have rbac --write add them")
	}
}

// alike returns the resource that may be the one of the needs, whose plural no CRD says.
func (p *Project) alike(granted rights.Granted, needs []rights.Need) (resource string) {
	for _, need := range needs {
		exact := func(crd schema.CRD) bool { return crd.Group == need.Group && crd.Plural == need.Resource }
		if resource = granted.Alike(need); resource == "" || slices.ContainsFunc(p.CRDs, exact) {
			return ""
		}
	}
	return resource
}

// unread names the bound ClusterRoles whose rules no file has.
func (p *Project) unread(granted rights.Granted) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(granted.Unread)) {
		at := granted.Unread[name]
		names = append(names, fmt.Sprintf("the ClusterRole %s, which %s binds,", name, p.at(at.File, at.Line)))
	}
	return strings.Join(names, " and ")
}

// unlisted adds files with roles that kustomize does not install, because its file does not list them.
func (p *Project) unlisted(dir string, granted rights.Granted) {
	kustomization, _ := source.ReadYAML(filepath.Join(dir, "kustomization.yaml"))
	if len(kustomization) == 0 {
		return
	}
	for _, role := range granted.Roles {
		below, err := filepath.Rel(dir, role.File)
		listed := func(n *yaml.Node) bool { return strings.HasPrefix(below+"/", filepath.Clean(n.Value)+"/") }
		if resources := source.Field(kustomization[0], "resources"); err == nil && resources != nil && !slices.ContainsFunc(resources.Content, listed) {
			p.add(finding{
				"rbac", report.Warning, role, "config/rbac/kustomization.yaml does not list " + below,
				"kustomize installs no role of the file", "add the file to resources, or remove it",
			})
		}
	}
}

// lack is a set of rights that roles or an account do not give: for one resource, or for the
// manager's work for one watch.
type lack struct {
	at       source.Position
	optional bool
	guarded  bool
	// unread names the bound roles whose rules no file has, "" for none.
	unread string
	// alike is the resource of which the roles give the rights, and which may be the one that is meant;
	// "" for none.
	alike  string
	needs  []rights.Need
	rights map[string]bool
	places []source.Position
}

// lacking returns the missing rights for the needs, by the cause. lacks returns the rights that are
// not given for a need.
func (p *Project) lacking(needs []rights.Need, lacks func(rights.Need) ([]string, error)) (map[string]*lack, error) {
	missing := map[string]*lack{}
	for _, need := range needs {
		if need.At.File == "" && !need.IsCertain() {
			continue
		}
		not, err := lacks(need)
		if err != nil {
			return nil, err
		}
		if len(not) == 0 {
			continue
		}
		at, cause := need.At, need.Group+" "+strings.Split(need.Resource, "/")[0]
		if at.File == "" {
			at.File = p.watchesFile
			cause = fmt.Sprint(at, need.Optional)
		}
		cause = fmt.Sprint(cause, need.Guarded)
		if missing[cause] == nil {
			missing[cause] = &lack{at: at, optional: need.Optional, guarded: need.Guarded, rights: map[string]bool{}}
		}
		missing[cause].needs = append(missing[cause].needs, need)
		for _, right := range not {
			missing[cause].rights[right] = true
		}
		if !slices.Contains(missing[cause].places, at) {
			missing[cause].places = append(missing[cause].places, at)
		}
	}
	return missing, nil
}

func (p *Project) lacks(l *lack, id, what, also, remedy string) {
	severity, why := report.Error, "the API server answers with 403, and the run fails"
	switch {
	case l.optional:
		severity, why = report.Warning, "runs go on, but resources get no Events"
	case l.guarded:
		severity, why = report.Info, "the task runs only where the cluster serves the kind; there the API server answers with 403"
	case l.alike != "":
		severity, why = report.Warning, "the plural is guessed: if it is "+l.alike+", for which the roles have the rights, nothing is lacking; or else the API server answers with 403"
	case l.unread != "":
		severity, why = report.Warning, "the rules of "+l.unread+" are not known: unless they give the rights, the API server answers with 403, and the run fails"
	}
	others := ""
	if len(l.places) > 1 {
		var at []string
		for _, place := range l.places[1:] {
			at = append(at, p.at(place.File, place.Line))
		}
		others = also + few(at)
	}
	p.add(finding{id, severity, l.at, what + strings.Join(slices.Sorted(maps.Keys(l.rights)), ", ") + others, why, remedy})
}

// few joins the first of many words, and says how many more there are.
func few(words []string) string {
	const most = 5
	if more := len(words) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), more)
	}
	return strings.Join(words, ", ")
}

// namespaces adds children that can have no owner reference.
func (p *Project) namespaces(u *Unit) {
	owner := rights.ClusterScoped(u.Watch.GVK.GroupVersion().String(), u.Watch.GVK.Kind, p.CRDs)
	for _, t := range u.Tasks {
		if rights.Module(t) != "k8s" || source.Scalar(t.Arg("state")) == "absent" || source.Scalar(t.Arg("state")) == "patched" || owner {
			continue
		}
		objects, _ := rights.Objects(u.Index, t)
		for _, o := range objects {
			what := u.elsewhere(p.CRDs, o, t)
			if what == "" {
				continue
			}
			severity, why := report.Warning, "it gets annotations instead of an owner reference: the garbage collector does not delete it with the resource"
			remedy := "delete it in a finalizer"
			if u.Watch.Finalizer != nil {
				severity, remedy = report.Info, "make sure that the finalizer deletes it"
			}
			if u.Watch.ConfineToNamespace {
				severity, why, remedy = report.Error, "confineToNamespace is set: the write is refused with 403", "create it elsewhere, or take confineToNamespace out"
			} else if !u.Watch.WatchClusterScopedResources && o.Namespace == nil {
				why += ", and its changes trigger nothing without watchClusterScopedResources"
			}
			p.add(finding{"other-namespace", severity, o.Position, o.Kind + " " + what + ", and cannot belong to the " + u.Watch.GVK.Kind, why, remedy})
		}
	}
}

// elsewhere says where an object is, if that is not the namespace of the resource.
func (u *Unit) elsewhere(crds []schema.CRD, o rights.Object, t *source.Task) string {
	if rights.ClusterScoped(o.APIVersion, o.Kind, crds) {
		return "has no namespace"
	}
	if o.Namespace == nil {
		return ""
	}
	text := u.Text(o.Namespace)
	if text == nil {
		return "is in the namespace " + source.Scalar(o.Namespace)
	}
	if values, known := u.Values(o.Namespace, t); known {
		for _, v := range values {
			if v.Node != o.Namespace && u.Text(v.Node) == nil && source.Scalar(v.Node) != "" {
				return "is in the namespace " + source.Scalar(v.Node)
			}
		}
	}
	if chosen := u.chosen(text, t); chosen != "" {
		return "is in a namespace that the resource chooses by " + chosen
	}
	if !text.Analysis.Whole && len(text.Analysis.Outputs) > 0 {
		return "is in another namespace, " + quoted(text.Value)
	}
	return ""
}

// chosen returns the field of the resource that a text has.
func (u *Unit) chosen(text *source.Text, t *source.Task) string {
	for _, output := range text.Analysis.Outputs {
		for _, flow := range output.Flows {
			for _, s := range u.Sources(flow, t) {
				if u.Variables.Known && u.Variables.Has(s.Name) && !u.Variables.Identity(s.Name, s.Path) {
					return describeSource(s)
				}
			}
		}
	}
	return ""
}
