package rights

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	kinds "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/author/source"
)

// tasks adds the rights for a task.
func (c *Collector) tasks(u *source.Unit, i *source.Index, t *source.Task) {
	module := Module(t)
	switch module {
	case "", "requeue_after", "osdk_metric", "k8s_cluster_info", "helm_template", "helm_pull", "kubeconfig", "helm_plugin", "helm_plugin_info", "helm_repository", "helm_registry_auth", "k8s_auth":
		return
	case "k8s_exec", "k8s_cp":
		c.task(t.Position, "", "pods", "get")
		c.task(t.Position, "", "pods/exec", "get", "create")
		return
	case "k8s_drain":
		c.task(t.Position, "", "nodes", "get", "patch")
		c.task(t.Position, "", "pods", "get", "list")
		c.task(t.Position, "", "pods/eviction", "create")
		return
	case "k8s_taint":
		c.task(t.Position, "", "nodes", "get", "patch")
		return
	case "k8s_service":
		c.task(t.Position, "", "services", "get", "create", "patch")
		return
	case "k8s_event":
		c.event(i, t)
		return
	}
	objects, known := Objects(i, t)
	if module == "k8s_log" && !known {
		objects, known = []Object{{Position: t.Position, APIVersion: "v1", Kind: "Pod", Name: t.Arg("name")}}, true
	}
	if !known {
		c.unknown(t.Position, "what "+t.Module+" asks of the API server")
	}
	for _, o := range objects {
		c.object(u, i, t, module, o)
	}
}

// object adds a task's rights for one kind.
func (c *Collector) object(u *source.Unit, i *source.Index, t *source.Task, module string, o Object) {
	kind, known := c.kind(module, o)
	if !known {
		return
	}
	group, resource, read := kind.group, kind.resource, reading(o)
	switch module {
	case "k8s":
		c.states(u, i, t, o, kind)
	case "k8s_info":
		c.task(o.Position, group, resource, read)
	case "k8s_require_owned":
		c.task(o.Position, group, resource, "get")
	case "k8s_delete_owned":
		if t.Arg("name") != nil { // It may be a list, of which the objects know nothing.
			read = "get"
		}
		c.task(o.Position, group, resource, read, "delete")
	case "k8s_json_patch":
		c.task(o.Position, group, resource+subresource(source.Scalar(t.Arg("name"))), "get", "patch")
	case "k8s_status":
		c.task(o.Position, group, resource, "get")
		c.task(o.Position, group, resource+"/status", "patch")
	case "k8s_scale":
		scaled := resource + "/scale"
		if resource == "jobs" { // It has no replicas: the module sets its parallelism.
			scaled = resource
		}
		c.task(o.Position, group, resource, read, "get")
		c.task(o.Position, group, scaled, "patch")
	case "k8s_rollback":
		c.task(o.Position, group, resource, read, "patch")
		c.task(o.Position, "apps", map[bool]string{true: "replicasets", false: "controllerrevisions"}[resource == "deployments"], "list")
	case "k8s_log":
		c.logs(o, kind)
	default:
		c.unknown(t.Position, "what "+t.Module+" asks of the API server")
	}
}

// states adds the rights of the module k8s for one kind, in each state that it may be asked for.
func (c *Collector) states(u *source.Unit, i *source.Index, t *source.Task, o Object, kind served) {
	for _, state := range States(u, i, t) {
		c.task(o.Position, kind.group, kind.resource, verbs(t, o, state)...)
		if state == "present" {
			c.children(u, o, kind)
		}
	}
}

// logs adds the rights of the module k8s_log for one kind.
func (c *Collector) logs(o Object, kind served) {
	read := reading(o)
	c.task(o.Position, kind.group, kind.resource, read)
	c.task(o.Position, "", "pods/log", "get")
	if kind.resource != "pods" || read == "list" {
		c.task(o.Position, "", "pods", "list")
	}
}

// subresource returns that of a name such as web/scale, "" if there is none.
func subresource(name string) string {
	if at := strings.LastIndex(name, "/"); at >= 0 && slices.Contains([]string{"/status", "/scale"}, name[at:]) {
		return name[at:]
	}
	return ""
}

// kind returns the kind of an object. The modules of ensign.operator ask no group but the one that is
// named; all others are those of kubernetes.core.
func (c *Collector) kind(module string, o Object) (served, bool) {
	if slices.Contains([]string{"k8s_status", "k8s_require_owned", "k8s_delete_owned"}, module) {
		return exactly(o.APIVersion, o.Kind, c.CRDs)
	}
	return c.meant(o.Position, o.APIVersion, o.Kind)
}

// reading is the verb by which a task reads the object: by name, or with others.
func reading(o Object) string {
	if o.Name != nil || o.Template {
		return "get"
	}
	return "list"
}

var stateWords = regexp.MustCompile(`['"](absent|patched|present)['"]`)

// States returns the states that the module k8s or helm may be asked for: by the task, by its variables,
// or by the watch's variables in their place.
func States(u *source.Unit, i *source.Index, t *source.Task) []string {
	n := t.Arg("state", "release_state")
	text := i.Text(n)
	if text == nil {
		return []string{cmp.Or(source.Scalar(n), "present")}
	}
	found, known := i.Names(n, t)
	if !known {
		found = nil
		for _, word := range stateWords.FindAllStringSubmatch(text.Value, -1) { // "{{ 'present' if enabled else 'absent' }}"
			found = append(found, word[1])
		}
		if len(found) < 2 { // "{{ item.state | default('present') }}"
			found = append(found, "absent")
		}
	}
	if len(found) == 0 || !known && !slices.Contains(found, "present") {
		found = append(found, "present")
	}
	for _, name := range text.Analysis.Names {
		for _, vars := range varsOf(u) {
			if state, ok := vars[name.Name].(string); ok && !slices.Contains(found, state) {
				found = append(found, state)
			}
		}
	}
	return found
}

// varsOf returns the variables that the watch gives the content of the unit. Those of a finalizer with content of
// its own are for that alone.
func varsOf(u *source.Unit) []map[string]any {
	finalizer := u.Watch.Finalizer
	if finalizer == nil || !u.Finalizing && finalizer.Content != u.Watch.Content {
		return []map[string]any{u.Watch.Vars}
	}
	return []map[string]any{u.Watch.Vars, finalizer.Vars}
}

// verbs are those of the module k8s.
func verbs(t *source.Task, o Object, state string) []string {
	read := []string{reading(o)}
	if o.Name == nil && t.Arg("label_selectors") == nil && !o.Template {
		read = nil // A name that is not known here, or that does not exist yet.
	}
	switch state {
	case "absent":
		if source.True(t.Arg("delete_all")) {
			read = []string{"get", "list"}
		}
		return append(read, "delete")
	case "patched":
		return append(read, "patch")
	}
	switch {
	case o.Generated && o.Name == nil:
		return []string{"create"}
	case source.True(t.Arg("force")) && !source.True(t.Arg("apply")):
		return append(read, "create", "update")
	}
	return append(read, "create", "patch")
}

// children adds the watch of a kind whose objects the content creates.
func (c *Collector) children(u *source.Unit, o Object, kind served) {
	w := u.Watch
	if !w.WatchDependentResources || slices.Contains(w.Blacklist, kinds.GroupKind{Group: kind.group, Kind: kind.kind}) {
		return
	}
	owner := ClusterScoped(w.GVK.GroupVersion().String(), w.GVK.Kind, c.CRDs)
	if kind.clusterScoped && !owner && !w.WatchClusterScopedResources {
		return
	}
	c.manager(o.Position, kind.group, kind.resource, "the manager: changes of children", "list", "watch")
}

// event adds the rights of the module k8s_event.
func (c *Collector) event(i *source.Index, t *source.Task) {
	appends := t.Arg("appendTimestamp", "append_timestamp")
	switch {
	case source.Scalar(t.Arg("state")) == "absent":
		c.task(t.Position, "", "events", "get", "delete")
	case appends == nil || source.True(appends):
		c.task(t.Position, "", "events", "create")
	default:
		c.task(t.Position, "", "events", "get", "create", "patch")
	}
	involved := t.Arg("involvedObject", "involved_object")
	if source.Field(involved, "uid") != nil || source.Field(involved, "kind") == nil {
		return
	}
	objects, known := pairs(i, source.Field(involved, "kind"), source.Field(involved, "apiVersion"), t)
	if !known {
		c.unknown(t.Position, "the kind of the Event's object")
	}
	for _, o := range objects {
		group, resource := c.resource(o.APIVersion, o.Kind)
		c.task(t.Position, group, resource, "get")
	}
}
