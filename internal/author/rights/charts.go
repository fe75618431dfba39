package rights

import (
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/chart/describe"
)

// released are Helm's verbs for an object of a release, and for the Secrets of revisions.
var released = []string{"get", "list", "watch", "create", "patch", "update", "delete"} //nolint:gochecknoglobals // A constant.

const rbacGroup = "rbac.authorization.k8s.io"

// Chart adds the rights for the releases of a chart: for the Secrets in which Helm stores them, for
// the objects that the chart renders and those that its templates look up, and for its CRDs. A
// chart with roles also needs the rights that these give. where names the chart's watch, which is
// at a position.
func (c *Collector) Chart(at source.Position, where string, chart *describe.Chart, objects []describe.Object) {
	c.run(at, "", "secrets", where+": its revisions", released...)
	if len(chart.CRDs) > 0 {
		c.run(at, "apiextensions.k8s.io", "customresourcedefinitions", where+": its CRDs", "get", "list", "watch", "create", "patch")
	}
	own := Collector{CRDs: slices.Clone(c.CRDs)} // Which also knows the chart's kinds.
	define := func(d describe.CRD) {
		own.CRDs = append(own.CRDs, schema.CRD{Group: d.Group, Kind: d.Kind, Plural: d.Plural, Namespaced: d.Namespaced})
	}
	for _, d := range chart.CRDs {
		define(d)
	}
	for _, o := range objects {
		if o.Defines.Kind != "" {
			define(o.Defines)
		}
	}
	seen := map[[2]string]bool{}
	for _, o := range objects {
		group, resource := own.resource(o.APIVersion, o.Kind)
		if key := [2]string{group, resource}; !seen[key] {
			seen[key] = true
			c.run(at, group, resource, where+": "+o.Kind, released...)
			if c.inName { // The account's rights give the manager no "watch".
				c.manager(at, group, resource, "the manager: changes of children", "list", "watch")
			}
		}
	}
	for _, l := range chart.Lookups {
		group, resource := own.resource(l.APIVersion, l.Kind)
		c.run(at, group, resource, where+": lookup of a "+l.Kind, "get", "list")
	}
	if chart.LooksUpMore {
		c.unknown(source.Position{File: "watches.yaml", Line: at.Line, Column: 1}, "what the chart looks up by a kind that is not plain text")
	}
	c.roles(at, where, objects)
	c.unknown(source.Position{File: "watches.yaml", Line: at.Line, Column: 1}, "what the chart renders with values other than its own and those of the samples")
}

// Waits adds the lists by which Helm sees whether the objects of a release are ready. Without that
// right Helm waits until its time is over.
func (c *Collector) Waits(at source.Position, where string, objects []describe.Object) {
	where += ": wait"
	for _, o := range objects {
		switch {
		case !strings.HasPrefix(o.APIVersion, "apps/"):
		case o.Kind == "Deployment":
			c.run(at, "apps", "replicasets", where, "list")
			c.run(at, "", "pods", where, "list")
		case o.Kind == "StatefulSet", o.Kind == "ReplicaSet":
			c.run(at, "", "pods", where, "list")
		}
	}
}

// ValuesFrom adds the rights to read the objects that values come from, by their kinds. The
// references to them add the rest.
func (c *Collector) ValuesFrom(at source.Position, where string, kinds []string) {
	for _, kind := range kinds {
		_, resource := c.resource("v1", kind)
		c.run(at, "", resource, where+": its valuesFrom", "get")
	}
}

// roles adds the rights that the API server requires of an account that writes roles and bindings.
// It must have each right that they give, or be allowed to give rights that it does not have.
func (c *Collector) roles(at source.Position, where string, objects []describe.Object) {
	rendered := map[string]describe.Object{}
	for _, o := range objects {
		rendered[o.Kind+"/"+o.Name] = o
		for _, rule := range o.Rules {
			resources := rule.Resources
			if len(rule.NonResourceURLs) > 0 {
				resources = rooted(rule.NonResourceURLs)
				rule.APIGroups = []string{""}
			}
			for _, group := range rule.APIGroups {
				for _, resource := range resources {
					c.run(at, group, resource, where+": what its "+o.Kind+" gives", rule.Verbs...)
				}
			}
		}
		if o.Aggregates {
			c.run(at, rbacGroup, "clusterroles", where+": a ClusterRole that aggregates others", "escalate")
		}
	}
	for _, o := range objects {
		role, here := rendered[o.RoleRef.Kind+"/"+o.RoleRef.Name]
		resource := map[string]string{"Role": "roles", "ClusterRole": "clusterroles"}[o.RoleRef.Kind]
		if resource == "" || here && !role.Aggregates {
			continue
		}
		right := Right{Group: rbacGroup, Resource: resource, Verb: "bind"}
		if !here { // Else its name depends on the release's.
			right.Name = o.RoleRef.Name
		}
		c.runNeeds(Need{Right: right, Where: where + ": " + o.Kind, At: at})
	}
}
