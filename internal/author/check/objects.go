package check

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	kinds "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/suggest"
)

// objects adds objects of tasks that no API server takes: of a kind that Kubernetes does not
// have, without a name, or without a namespace.
func (p *Project) objects(u *Unit) {
	for _, t := range u.Tasks {
		if rights.Module(t) == "" {
			continue
		}
		found, _ := rights.Objects(u.Index, t)
		for _, o := range found {
			if what := unknownKind(o); what != "" {
				p.add(finding{
					"object", report.Error, o.Position, what,
					"the task finds no such resource at the API server, and fails", "correct apiVersion and kind; kubectl api-resources lists them",
				})
			}
			if what := gone(o); what != "" {
				p.add(finding{
					"object", report.Warning, o.Position, what,
					"with that Kubernetes, and later ones, the task fails", "use the version that kubectl api-resources lists",
				})
			}
		}
		state := source.Scalar(t.Arg("state"))
		for _, o := range found {
			if o.Disowned && state != "absent" && u.elsewhere(p.CRDs, o, t) == "" {
				p.add(finding{
					"owner-reference", report.Warning, o.Position, "the resource owns the " + o.Kind + " in spite of the empty ownerReferences",
					"the API proxy adds the reference to what a run creates, and keeps it in patches: the object is deleted with the resource",
					"remove ownerReferences; an object that is to outlive the resource needs the annotation helm.sh/resource-policy: keep",
				})
			}
		}
		if rights.Module(t) == "k8s" && (state == "" || state == "present") {
			p.nameless(u, t)
		}
	}
}

// builtIn returns the kind as Kubernetes' own types know it. known is false for the groups of
// others, and for versions that are newer than this program.
func builtIn(o rights.Object) (gvk kinds.GroupVersionKind, known bool) {
	gv, err := kinds.ParseGroupVersion(o.APIVersion)
	gvk = gv.WithKind(o.Kind)
	return gvk, err == nil && o.Kind != "" && scheme.Scheme.IsGroupRegistered(gv.Group) && strings.ToLower(o.Kind) != o.Kind
}

// unknownKind says what is wrong with a kind of a group of Kubernetes' own, "" if nothing is.
func unknownKind(o rights.Object) string {
	gvk, known := builtIn(o)
	if !known || scheme.Scheme.Recognizes(gvk) {
		return ""
	}
	var names, groups []string
	for other := range scheme.Scheme.AllKnownTypes() {
		if other.Kind == gvk.Kind && other.Version != "__internal" {
			groups = append(groups, other.GroupVersion().String())
		}
		if other.Version != "__internal" && !strings.HasSuffix(other.Kind, "Options") {
			names = append(names, other.Kind)
		}
	}
	slices.Sort(groups)
	slip := suggest.Slip(gvk.Kind, names)
	switch {
	case len(groups) > 0 && o.APIVersion == "v1": // The client looks for the kind in all groups.
		return ""
	case len(groups) > 0:
		return fmt.Sprintf("%s has no kind %s; it is of %s", o.APIVersion, o.Kind, strings.Join(groups, ", "))
	case slip != "":
		return fmt.Sprintf("%s has no kind %s%s", o.APIVersion, o.Kind, slip)
	}
	return ""
}

// gone says since when Kubernetes does not serve a version of a kind, "" if it does.
func gone(o rights.Object) string {
	gvk, _ := builtIn(o)
	object, err := scheme.Scheme.New(gvk)
	if err != nil {
		return ""
	}
	if ended, ends := object.(interface{ APILifecycleRemoved() (int, int) }); ends {
		major, minor := ended.APILifecycleRemoved()
		return fmt.Sprintf("%s of %s is not served by Kubernetes %d.%d and later", o.Kind, o.APIVersion, major, minor)
	}
	return ""
}

// nameless adds objects that a task creates and that have no name, or no namespace though their
// kind needs one.
func (p *Project) nameless(u *Unit, t *source.Task) {
	if hasDefaults(u, t) || rights.Definition(t) == nil {
		return
	}
	values, _ := u.Values(rights.Definition(t), t)
	for _, v := range values {
		metadata, kind := source.Field(v.Node, "metadata"), source.Scalar(v.Node, "kind")
		if !stored(kind) || !written(v.Node) || metadata != nil && !written(metadata) {
			continue
		}
		o := rights.Object{APIVersion: source.Scalar(v.Node, "apiVersion"), Kind: kind}
		if source.Field(metadata, "name") == nil && source.Field(metadata, "generateName") == nil && t.Arg("name", "generate_name") == nil {
			p.lacksField(t, o, "name", "metadata.name, or metadata.generateName")
		}
		if source.Field(metadata, "namespace") == nil && t.Arg("namespace") == nil && p.namespaced(o) {
			p.lacksField(t, o, "namespace", "metadata.namespace, such as \"{{ ansible_operator_meta.namespace }}\"")
		}
	}
}

// stored reports whether objects of the kind, which is "" or a template where it is not known, have
// a name for certain.
func stored(kind string) bool {
	return kind != "" && !strings.Contains(kind, "{{") && !strings.HasSuffix(kind, "List") && !reviews(kind)
}

// written reports whether all keys of a mapping stand in it.
func written(n *yaml.Node) bool { return n.Kind == yaml.MappingNode && source.Field(n, "<<") == nil }

func (p *Project) lacksField(t *source.Task, o rights.Object, what, field string) {
	p.add(finding{
		"object", report.Error, t.Position, fmt.Sprintf("the %s has no %s", o.Kind, what),
		"the task fails: the module gives none", "add " + field,
	})
}

// namespaced reports whether the objects of a kind have a namespace for certain.
func (p *Project) namespaced(o rights.Object) bool {
	if crd := schema.Of(p.CRDs, kinds.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind()); crd != nil {
		return crd.Namespaced
	}
	gvk, known := builtIn(o)
	return known && scheme.Scheme.Recognizes(gvk) && !rights.ClusterScoped(o.APIVersion, o.Kind, p.CRDs) && !reviews(o.Kind)
}

// reviews are kinds of which the API server stores nothing: they need no name, and some have no
// namespace.
func reviews(kind string) bool { return strings.HasSuffix(kind, "Review") }
