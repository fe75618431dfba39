package watches

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Watch is one entry of watches.yaml: a kind and what reconciles it.
type Watch struct {
	GVK schema.GroupVersionKind
	// Line is where the entry begins in the file.
	Line    int
	Content Content
	// Vars are trusted: strings in them may be templates. The values are those
	// of JSON: map[string]any, []any, string, bool, int64, float64, nil.
	Vars map[string]any
	// Finalizer is nil where deletion needs no run.
	Finalizer *Finalizer
	// ReconcilePeriod 0 means the manager's own.
	ReconcilePeriod time.Duration
	ManageStatus    bool
	// WatchDependentResources lets a change of a child bring its CR back, and
	// WatchClusterScopedResources also that of one without a namespace that only
	// annotations tie to its CR.
	WatchDependentResources     bool
	WatchClusterScopedResources bool
	// Blacklist are child kinds that are neither watched nor read from the cache,
	// in whatever version.
	Blacklist []schema.GroupKind
	// References are the objects that a CR names and whose changes bring it back.
	References              []Reference
	WatchAnnotationsChanges bool
	SnakeCaseParameters     bool
	// ConfineToNamespace lets runs write in their object's namespace only.
	ConfineToNamespace bool
	MarkUnsafe         bool
	// Selector is never nil; it selects everything by default.
	Selector labels.Selector
	// MaxRunnerArtifacts is how many artifacts are kept for one object; 0 keeps
	// all.
	MaxRunnerArtifacts int
	// Timeout ends a run that takes longer; 0 means never.
	Timeout time.Duration
	// MaxConcurrentReconciles 0 means the manager's own.
	MaxConcurrentReconciles int
	// Warm lets runs be forked from servers, where the manager has some. It is no part
	// of what a run depends on.
	Warm bool `json:"-"`
	// Verbosity is 0 to 7, or nil for the manager's own.
	Verbosity *int
}

// Reference says which object of a kind a CR names.
type Reference struct {
	GVK schema.GroupVersionKind
	// Name is where in the CR the object's name stands.
	Name Path
	// Namespace is where its namespace stands; empty for the CR's own.
	Namespace Path
}

// Content is what a run executes: exactly one of Role and Playbook.
type Content struct {
	// Role is a directory's name below RolesPath, or, with an empty RolesPath,
	// a role of a collection as namespace.collection.role.
	Role string
	// RolesPath is absolute.
	RolesPath string
	// Playbook is an absolute path.
	Playbook string
}

// Finalizer is what runs before an object may go.
type Finalizer struct {
	// Name goes into metadata.finalizers.
	Name string
	// Content is the watch's own where the finalizer names none.
	Content Content
	// Vars are trusted, and stronger than the watch's.
	Vars map[string]any
}

// Search says where roles and playbooks are looked for.
type Search struct {
	// Dir is the operator's directory, absolute. Relative paths start there.
	Dir string
	// RolesPath and CollectionsPath are directories in the order of search.
	RolesPath, CollectionsPath []string
	// LookupEnv replaces ${VAR}; nil replaces nothing.
	LookupEnv func(string) (string, bool)
	// Unset is told of each ${VAR} that stays as it is because VAR is not set; nil is
	// told of none.
	Unset func(name string, line int)
}

// Load reads the file at path, relative to search.Dir. The watches come in the
// file's order. The error is of type Faults and holds everything that is wrong.
func Load(path string, search Search) ([]Watch, error) {
	r := &reader{file: path, lookup: search.LookupEnv, unset: search.Unset}
	var watches []Watch
	for _, node := range r.entries(search.absolute(path)) {
		if watch, ok := r.watch(node, search); ok {
			watches = append(watches, watch)
		}
	}
	r.distinct(watches)
	if len(r.faults) > 0 {
		return nil, r.faults.sorted()
	}
	return watches, nil
}

// distinct refuses a kind that two entries reconcile: its objects are the same
// in every version, and the entries would undo each other's work.
func (r *reader) distinct(watches []Watch) {
	first := map[schema.GroupKind]Watch{}
	for _, watch := range watches {
		kind := watch.GVK.GroupKind()
		earlier, twice := first[kind]
		switch {
		case !twice:
			first[kind] = watch
		case earlier.GVK == watch.GVK:
			r.fault(watch.Line, "kind %s of version %q is watched on line %d already; keep one of the two entries",
				kind, watch.GVK.Version, earlier.Line)
		default:
			r.fault(watch.Line, "kind %s is watched on line %d already, as version %q; its objects are the same in every version: keep one of the two entries",
				kind, earlier.Line, earlier.GVK.Version)
		}
	}
}

// Fault is one thing wrong in the file.
type Fault struct {
	// File is the path as it was given to Load.
	File string
	// Line is 0 for what concerns the file as a whole.
	Line    int
	Message string
}

// Faults is everything wrong in the file, in the order of its lines.
type Faults []Fault

// Error lists the faults, one a line, as "watches.yaml:LINE: message".
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].String()
	}
	return strings.Join(lines, "\n")
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
