package rights

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/author/source"
)

// Guarded reports whether a condition of the task, or of one around it, asks which groups, kinds or
// version the API server serves. Such a task runs in some clusters alone.
func Guarded(i *source.Index, t *source.Task) bool {
	for around := t; around != nil; around = around.Parent {
		if slices.ContainsFunc(source.Each(around.Keys["when"]), func(n *yaml.Node) bool { return asksCluster(i, n, around, 0) }) {
			return true
		}
	}
	return false
}

// asksCluster reports whether a text, or a variable that it reads, has kinds that the cluster
// serves.
func asksCluster(i *source.Index, n *yaml.Node, t *source.Task, depth int) bool {
	text := i.Text(n)
	if text == nil || depth > maxDepth {
		return false
	}
	for _, l := range text.Analysis.Lookups {
		if _, asks := l.Options["cluster_info"]; asks {
			return true
		}
	}
	for _, name := range text.Analysis.Names {
		if strings.Contains(name.Name, "api_group") {
			return true
		}
		for _, d := range i.Defined(name.Name, t) {
			if d.How == source.Register && d.Task != nil && Module(d.Task) == "k8s_cluster_info" || d.Value != nil && asksCluster(i, d.Value, d.Task, depth+1) {
				return true
			}
		}
	}
	return false
}
