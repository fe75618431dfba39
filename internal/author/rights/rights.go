package rights

import (
	"fmt"
	"strings"

	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/watches"
)

// Right is a verb on a resource, which is "resource/subresource" for subresources. Other paths of
// the API server begin with a slash.
type Right struct {
	Group, Resource, Verb string
	// Name is that of the one object that the right is about; "" for all. Only roles that may
	// be bound have one.
	Name string
}

func (r Right) subject() subject { return subject{r.Group, r.Resource, r.Name} }

func (r Right) String() string {
	resource := r.Resource
	if r.Group != "" {
		base, sub, has := strings.Cut(resource, "/")
		resource = base + "." + r.Group
		if has {
			resource += "/" + sub
		}
	}
	if r.Name != "" {
		resource += " " + r.Name
	}
	return r.Verb + " " + resource
}

// Scope says in which role a right belongs.
type Scope int

// The scopes of roles. Those of Lease are for the manager's own namespace.
const (
	Manager Scope = iota
	Metrics
	Lease
)

// Need is a right and why it is needed.
type Need struct {
	Right

	Scope Scope
	// Where is "FILE:LINE" of a task, or words for an action of the manager itself.
	Where string
	// At is the task's position. For an action of the manager for a watch its File is "", and its
	// Line that of the watch.
	At source.Position
	// Or serves as well; the zero Right is none.
	Or Right
	// Optional is set where nothing fails without the right.
	Optional bool
	// Guarded is set for a task whose condition asks which groups the API server serves.
	Guarded bool
	// Anywhere is set where it is not known whether the right is needed in the manager's own
	// namespace alone.
	Anywhere bool
	// Elsewhere is set if a role outside of config/rbac gives the right.
	Elsewhere bool
}

// Unknown is a task of which cannot be told what it needs.
type Unknown struct {
	source.Position

	Message string
}

// Needs are all rights that an operator needs.
type Needs struct {
	All []Need
	// Accounts are the rights of the accounts as which runs use the API, in the namespaces of
	// their custom resources.
	Accounts []Need
	Unknown  []Unknown
}

// Collector collects needs.
type Collector struct {
	CRDs []schema.CRD
	Needs

	// inName is set while the runs of a watch use the API in the name of a service account.
	inName bool
	// guarded is set while a task is read whose condition asks which groups are served.
	guarded bool
}

// resource returns the group and resource of a kind of which the API version names the group.
func (c *Collector) resource(apiVersion, kind string) (group, resource string) {
	found, _ := exactly(apiVersion, kind, c.CRDs)
	return found.group, found.resource
}

// meant returns the kind that a client of kubernetes.core means. Where only a cluster can tell the
// group, it adds that as unknown, and returns false.
func (c *Collector) meant(at source.Position, apiVersion, kind string) (served, bool) {
	found, known := find(apiVersion, kind, c.CRDs)
	if !known {
		c.unknown(at, fmt.Sprintf("the group that serves %s in %s", kind, apiVersion))
	}
	return found, known
}

// ClusterScoped reports whether objects of the kind have no namespace, as far as it is known.
func ClusterScoped(apiVersion, kind string, crds []schema.CRD) bool {
	found, _ := find(apiVersion, kind, crds)
	return found.clusterScoped
}

func (c *Collector) engine(group, resource, where string, scope Scope, verbs ...string) {
	for _, verb := range verbs {
		c.All = append(c.All, Need{Right: subject{group: group, resource: resource}.right(verb), Scope: scope, Where: where})
	}
}

// manager adds the manager's rights for a watch, or for an object that a task creates.
func (c *Collector) manager(at source.Position, group, resource, where string, verbs ...string) {
	for _, verb := range verbs {
		c.All = append(c.All, Need{Right: subject{group: group, resource: resource}.right(verb), Where: where, At: at})
	}
}

func (c *Collector) task(at source.Position, group, resource string, verbs ...string) {
	c.run(at, group, resource, fmt.Sprintf("%s:%d", at.File, at.Line), verbs...)
}

// run adds the rights of a run: for the watch's service account, or for the manager.
func (c *Collector) run(at source.Position, group, resource, where string, verbs ...string) {
	for _, verb := range verbs {
		c.runNeeds(Need{Right: subject{group: group, resource: resource}.right(verb), Where: where, At: at, Guarded: c.guarded})
	}
}

func (c *Collector) runNeeds(need Need) {
	if c.inName {
		c.Accounts = append(c.Accounts, need)
	} else {
		c.All = append(c.All, need)
	}
}

// Engine adds the manager's own rights, whatever the content is.
func (c *Collector) Engine() {
	for _, verb := range []string{"create", "patch"} {
		c.All = append(c.All, Need{
			Right: Right{Group: "events.k8s.io", Resource: "events", Verb: verb}, Or: Right{Resource: "events", Verb: verb},
			Where: "the manager: Events of custom resources", Optional: true,
		})
	}
	c.engine("authentication.k8s.io", "tokenreviews", "the manager: who reads metrics", Metrics, "create")
	c.engine("authorization.k8s.io", "subjectaccessreviews", "the manager: who may read metrics", Metrics, "create")
	c.engine("coordination.k8s.io", "leases", "the manager: leader election", Lease, "get", "list", "create", "update")
	c.engine("", "events", "the manager: Events about who leads", Lease, "create", "patch")
	c.engine("", "configmaps", "the manager: the record of the kinds of children, and the ledger of releases", Lease, "get", "list", "create", "patch", "delete")
}

// Unit adds the rights for a watch, its references and its tasks.
func (c *Collector) Unit(u *source.Unit, i *source.Index) {
	w := u.Watch
	c.inName = w.ServiceAccount.IsSet()
	gv := w.GVK.GroupVersion().String()
	group, resource := c.resource(gv, w.GVK.Kind)
	where := fmt.Sprintf("the manager: the watch on line %d of watches.yaml", w.Line)
	at := source.Position{Line: w.Line, Column: 1}
	c.manager(at, group, resource, where, "get", "list", "watch")
	if w.Finalizer != nil {
		c.manager(at, group, resource, where+", its finalizer", "patch")
	}
	if w.ManageStatus {
		c.manager(at, group, resource+"/status", where+", its status", "patch")
	}
	for _, r := range w.References {
		group, resource := c.resource(r.GVK.GroupVersion().String(), r.GVK.Kind)
		c.manager(at, group, resource, where+", its references", "list", "watch")
	}
	if c.inName {
		c.All = append(c.All, Need{Right: actsAs(w.ServiceAccount), Where: where + ", as which its runs use the API", At: at})
	}
	if w.Job != nil {
		c.jobs(at)
	}
	for _, t := range u.Tasks {
		c.guarded = Guarded(i, t)
		c.tasks(u, i, t)
	}
	c.guarded = false
	for _, t := range u.Texts {
		c.lookups(i, t)
	}
}

// actsAs returns the right to impersonate the account, or each one where the CR may say which.
func actsAs(account watches.ServiceAccount) Right {
	right := Right{Resource: "serviceaccounts", Verb: "impersonate"}
	if len(account.Path) == 0 {
		right.Name = account.Name
	}
	return right
}

// forJobs is where the rights for runs in Jobs are needed.
const forJobs = "the manager: runs in Jobs"

// InOverlay records which rights for runs in Jobs the roles of an overlay give. Neither config/rbac
// needs them then, nor are they superfluous there.
func (n Needs) InOverlay(overlay Granted) {
	for i, need := range n.All {
		n.All[i].Elsewhere = need.Where == forJobs && covers(overlay.Rights, need.Right)
	}
}

// jobs adds the manager's rights for runs in Jobs, in its own namespace.
func (c *Collector) jobs(at source.Position) {
	const where = forJobs
	before := len(c.All)
	c.engine("batch", "jobs", where, Lease, "get", "list", "watch", "create", "patch", "delete")
	c.engine("", "pods", where, Lease, "get", "list", "watch", "delete")
	c.engine("", "events", where, Lease, "list")
	c.engine("", "secrets", where, Lease, "get", "create")
	c.engine("authentication.k8s.io", "tokenreviews", where, Metrics, "create")
	for i := range c.All[before:] {
		c.All[before+i].At = at
	}
}

// IsCertain reports whether the right is needed without leader election and metrics, too.
func (n Need) IsCertain() bool { return n.Scope == Manager || n.Where == forJobs }

// lookups adds the reads of lookups and queries of kubernetes.core.k8s.
func (c *Collector) lookups(i *source.Index, t *source.Text) {
	for _, l := range t.Analysis.Lookups {
		if l.Plugin != "kubernetes.core.k8s" && l.Plugin != "k8s" && l.Plugin != "community.kubernetes.k8s" {
			continue
		}
		if _, asks := l.Options["cluster_info"]; asks {
			continue // Every account may ask for the served kinds.
		}
		objects, known := lookupObjects(i, l, t)
		if !known {
			c.unknown(t.At(l.Line), "the kind of a lookup of "+l.Plugin)
			continue
		}
		verb := "list"
		if _, named := l.Options["resource_name"]; named {
			verb = "get"
		}
		for _, o := range objects {
			if kind, known := c.meant(o.Position, o.APIVersion, o.Kind); known {
				c.task(o.Position, kind.group, kind.resource, verb)
			}
		}
	}
}

func (c *Collector) unknown(at source.Position, what string) {
	c.Needs.Unknown = append(c.Needs.Unknown, Unknown{at, what + " is known in a run only; add its rights by hand, or take them from an audit log (rbac --from-audit)"})
}
