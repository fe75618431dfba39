package rights

import (
	"fmt"

	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/chart/describe"
	"github.com/ensign-operator/ensign/internal/watches"
)

// released is what Helm does with an object of a release, and with the Secrets of revisions.
var released = []string{"get", "list", "watch", "create", "patch", "update", "delete"} //nolint:gochecknoglobals // A constant.

// Chart adds what the releases of a watch need: for the Secrets in which Helm stores them, and
// for the objects that the chart renders, and for the definitions that it comes with.
func (c *Collector) Chart(w watches.Watch, objects []describe.Object, hasCRDs bool) {
	at := source.Position{Line: w.Line, Column: 1}
	where := fmt.Sprintf("the chart of the watch on line %d of watches.yaml", w.Line)
	c.manager(at, "", "secrets", where+": its revisions", released...)
	for _, kind := range w.Chart.ValuesKinds() {
		_, resource := c.resource("v1", kind)
		c.manager(at, "", resource, where+": its valuesFrom", "get")
	}
	if hasCRDs {
		c.manager(at, "apiextensions.k8s.io", "customresourcedefinitions", where+": its definitions", "get", "list", "watch", "create", "patch")
	}
	seen := map[[2]string]bool{}
	for _, o := range objects {
		group, resource := c.resource(o.APIVersion, o.Kind)
		if key := [2]string{group, resource}; !seen[key] {
			seen[key] = true
			c.manager(at, group, resource, where+": "+o.Kind, released...)
		}
	}
	c.unknown(source.Position{File: "watches.yaml", Line: w.Line, Column: 1}, "what the chart renders with values other than its own and those of the samples")
}
