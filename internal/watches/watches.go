package watches

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Watch is one entry of watches.yaml: a kind and the content that reconciles it.
type Watch struct {
	GVK schema.GroupVersionKind
	// Line is the line of the file on which the entry begins.
	Line    int
	Content Content
	// Chart is the Helm chart of the watch; nil if its content is not a chart.
	Chart *Chart `json:",omitempty"`
	// Custom is the kind of a content that is neither Content nor Chart: a Go program brings it.
	Custom *ContentKind `json:"-"`
	// Vars are trusted: Ansible evaluates templates in them. Values have the types of
	// JSON: map[string]any, []any, string, bool, int64, float64, nil.
	Vars map[string]any
	// Finalizer is nil if deletion needs no run.
	Finalizer *Finalizer
	// ReconcilePeriod 0 means --reconcile-period.
	ReconcilePeriod time.Duration
	ManageStatus    bool
	// Ready says who writes the condition Ready: manager or content. "" is decided for each CR, by
	// the conditions that its runs write.
	Ready string `json:",omitempty"`
	// Health is nil if Ready does not depend on the children of a CR.
	Health *Health `json:"-"`
	// StatusFrom has fields of children that the status shows, by the key of the status.
	StatusFrom map[string]ChildField `json:"-"`
	// WatchDependentResources makes a change of a child trigger its CR.
	WatchDependentResources bool
	// WatchClusterScopedResources extends that to children without a namespace whose
	// owner is named by annotations instead of an owner reference. Charts have it by default.
	WatchClusterScopedResources bool
	// Blacklist lists the kinds of children that the manager does not watch, in any version.
	Blacklist []schema.GroupKind
	// References are the objects that a CR names. A change of one triggers the CR.
	References              []Reference
	WatchAnnotationsChanges bool
	SnakeCaseParameters     bool
	// ConfineToNamespace makes the API proxy refuse writes of a run outside of its CR's
	// namespace.
	ConfineToNamespace bool
	// ServiceAccount says as which account runs use the API.
	ServiceAccount ServiceAccount `json:",omitzero"`
	MarkUnsafe     bool
	// Selector selects the CRs to run content for. It is never nil and selects all by
	// default.
	Selector labels.Selector
	// MaxRunnerArtifacts is the number of artifacts kept for one CR; 0 keeps all.
	MaxRunnerArtifacts int `json:"-"`
	// Timeout is the longest duration of a run; 0 means no limit.
	Timeout time.Duration
	// MaxConcurrentReconciles 0 means --max-concurrent-reconciles.
	MaxConcurrentReconciles int `json:"-"`
	// Warm allows warm runs, which have the same result as cold ones.
	Warm bool `json:"-"`
	// Verbosity is 0 to 7; nil means --ansible-verbosity.
	Verbosity *int
	// Job says how the Jobs look in which runs execute; nil: they execute in the manager.
	Job *Job `json:",omitempty"`

	// Settings that only a Go program has.

	// TriggerAnnotations are further annotations whose change makes content run.
	TriggerAnnotations []string `json:",omitempty"`
	// Paused reports whether nothing is to be run for the CR; nil: its annotation alone does. It
	// is not asked for a CR that is being deleted.
	Paused func(cr *unstructured.Unstructured) bool `json:"-"`
}

// Health says which children a CR's Ready depends on: all but those that are ignored.
type Health struct {
	// Grace is how long a child that was Current may be InProgress before that counts.
	Grace time.Duration
	// Ignore has the kinds and names of children that do not count; no name is any name.
	Ignore []KindName
}

// KindName is the kind and the name of objects.
type KindName struct{ Kind, Name string }

// Ignores reports whether a child does not count.
func (h *Health) Ignores(kind, name string) bool {
	return slices.ContainsFunc(h.Ignore, func(i KindName) bool { return i.Kind == kind && (i.Name == "" || i.Name == name) })
}

// Reference finds the objects of a kind that a CR names.
type Reference struct {
	GVK schema.GroupVersionKind
	// Name is the path to the object's name in the CR.
	Name Path
	// Namespace is the path to the object's namespace in the CR; if it is empty, the
	// object is in the CR's namespace.
	Namespace Path
	// StatusFields are the fields of the object's status whose change triggers the CR too.
	StatusFields []string
	// Fixed is the name of an object in each CR's namespace, in place of Name.
	Fixed string `json:",omitempty"`
	// OfListedKind says that Name leads through a list whose elements have a kind: those count
	// that have the kind of GVK.
	OfListedKind bool `json:",omitempty"`
}

// Content is the role or playbook that a run executes: exactly one of Role and Playbook is set.
type Content struct {
	// Role is the name of a directory below RolesPath. If RolesPath is empty, it is
	// the name of a role in a collection: namespace.collection.role.
	Role string
	// RolesPath is absolute.
	RolesPath string
	// Playbook is an absolute path.
	Playbook string
}

// Finalizer is the content that must succeed before a CR is deleted.
type Finalizer struct {
	// Name is the entry in metadata.finalizers.
	Name string
	// Content is the watch's content if the finalizer names none.
	Content Content
	// Vars are trusted, and override the watch's vars.
	Vars map[string]any
	// Former is an older name of the same finalizer, "" if there is none. To a CR that has it
	// no second finalizer is added; either name is removed.
	Former string `json:",omitempty"`
}

// Names returns all entries of metadata.finalizers that are this finalizer.
func (f *Finalizer) Names() []string {
	if f.Former == "" {
		return []string{f.Name}
	}
	return []string{f.Name, f.Former}
}

// Is reports whether the entry of metadata.finalizers is this finalizer.
func (f *Finalizer) Is(entry string) bool { return slices.Contains(f.Names(), entry) }

// Search holds the directories in which Load looks for roles and playbooks, and the
// environment that it substitutes into the file.
type Search struct {
	// Dir is the operator's directory, an absolute path. Relative paths start there.
	Dir string
	// RolesPath and CollectionsPath list directories in the order of search.
	RolesPath, CollectionsPath []string
	// Here returns where an absolute path of the file is; nil if all are where they say.
	Here func(path string) string
	// LookupEnv returns the value for ${VAR}; if it is nil, nothing is replaced.
	LookupEnv func(string) (string, bool)
	// KindsOnly leaves the content of watches and finalizers unsearched and their Content empty.
	KindsOnly bool
	// Charts searches charts also if KindsOnly is set.
	Charts bool
	// OnUnset is called for each ${VAR} that is not replaced because VAR is not set. It
	// may be nil.
	OnUnset func(name string, line int)
}

// Load reads the file at path, which is relative to search.Dir. It returns the watches in the
// file's order, and an error of type Faults with all faults. With faults the watches are those
// that have a kind, and their Content is empty where it was not found; no manager runs them.
func Load(path string, search Search) ([]Watch, error) {
	p := &parser{path: path, lookupEnv: search.LookupEnv, onUnset: search.OnUnset}
	var watches []Watch
	for _, node := range p.entries(search.absolute(path)) {
		if watch, ok := p.parseWatch(node, search); ok {
			watches = append(watches, watch)
		}
	}
	p.rejectDuplicates(watches)
	if len(p.faults) > 0 {
		return watches, p.faults.sorted()
	}
	return watches, nil
}

// rejectDuplicates adds a fault for each kind that has two entries, also in different
// versions: a kind's objects are the same in every version, and the two entries would
// undo each other's work.
func (p *parser) rejectDuplicates(watches []Watch) {
	first := map[schema.GroupKind]Watch{}
	for _, watch := range watches {
		kind := watch.GVK.GroupKind()
		earlier, twice := first[kind]
		switch {
		case !twice:
			first[kind] = watch
		case earlier.GVK == watch.GVK:
			p.addFault(watch.Line, "kind %s of version %q is watched on line %d already; keep one of the two entries",
				kind, watch.GVK.Version, earlier.Line)
		default:
			p.addFault(watch.Line, "kind %s is watched on line %d already, as version %q; its objects are the same in every version: keep one of the two entries",
				kind, earlier.Line, earlier.GVK.Version)
		}
	}
}

// Fault is one error in the file.
type Fault struct {
	// File is the path that was given to Load.
	File string
	// Line is 0 if the fault concerns the file as a whole.
	Line    int
	Message string
}

// Faults are all errors in a file, in the order of its lines.
type Faults []Fault

// Error returns one line for each fault: "watches.yaml:LINE: message".
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].String()
	}
	return strings.Join(lines, "\n")
}

// ErrNoFile is the error of a file that is not there.
var ErrNoFile = errors.New("there is no file of watches")

const noFile = "there is no such file at "

// Is reports whether the file is not there, if that is asked.
func (f Faults) Is(target error) bool {
	return target == ErrNoFile && len(f) == 1 && strings.HasPrefix(f[0].Message, noFile)
}

func (f Fault) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.Message
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message)
}

func (f Faults) sorted() Faults {
	slices.SortStableFunc(f, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
	return slices.CompactFunc(f, func(a, b Fault) bool { return a == b })
}
