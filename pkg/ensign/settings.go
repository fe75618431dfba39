package ensign

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Settings are those of a watch with any content. A field that is not set has the default of
// watches.yaml, which docs/reference-watches.md describes.
type Settings struct {
	// ReconcilePeriod is the pause after which content runs again although nothing triggers it;
	// 0 is Options.ReconcilePeriod, for charts one minute.
	ReconcilePeriod time.Duration `watch:"reconcilePeriod"`
	// Timeout ends a run that takes longer, and a hook; 0 is an hour, less than 0 no limit.
	Timeout time.Duration `watch:"timeout"`
	// MaxConcurrentReconciles limits the runs of this watch at the same time; 0 is the manager's limit.
	MaxConcurrentReconciles int `watch:"maxConcurrentReconciles"`
	// Selector selects the resources that content runs for; nil: all.
	Selector *metav1.LabelSelector `watch:"selector"`
	// References are objects that resources name. A change of one triggers its resource.
	References []Reference `watch:"references"`
	// WatchDependentResources reports whether a change of a child triggers its resource; nil: yes.
	WatchDependentResources *bool `watch:"watchDependentResources"`
	// WatchClusterScopedResources extends that to children without a namespace of resources that
	// have one; nil: for charts.
	WatchClusterScopedResources *bool `watch:"watchClusterScopedResources"`
	// Ready is who writes the condition Ready: manager or content; "": the content does for each
	// resource whose runs have written it, and else the manager.
	Ready string `watch:"ready"`
	// Health makes Ready depend on the children of a resource; nil: it does not.
	Health *Health `watch:"health"`
	// StatusFrom has fields of children that the status shows, by the key of the status.
	StatusFrom map[string]ChildField `watch:"statusFrom"`
	// ConfineToNamespace lets runs write in the namespace of their resource alone.
	ConfineToNamespace bool `watch:"confineToNamespace"`
	// ServiceAccountName is the account of each resource's namespace as which its runs use the
	// API; "": Options.DefaultServiceAccount.
	ServiceAccountName string `watch:"serviceAccountName"`
	// ServiceAccountNamePath is the path to the field of the resource that names it, such as
	// spec.serviceAccountName, and comes before ServiceAccountName.
	ServiceAccountNamePath string `watch:"serviceAccountNamePath"`
}

// Health says which children count for Ready: all but those that it ignores.
type Health struct {
	// Grace is how long a child that was Current may be InProgress before that counts; "": 10s.
	Grace  string     `json:"grace,omitempty"`
	Ignore []KindName `json:"ignore,omitempty"`
}

// ChildField is a field of a child.
type ChildField struct {
	// From is the child's kind and name, such as Deployment/web; {name} is the name of the resource.
	From string `json:"from"`
	// Path is a JSONPath, such as .status.readyReplicas.
	Path string `json:"path"`
}

// KindName is the kind and the name of objects; no name is any.
type KindName struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
}

// Reference finds the objects of a kind that a resource names.
type Reference struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	// Name is the path to the object's name in the resource, such as spec.passwordSecret or
	// spec.users[*].secret.
	Name string `json:"name"`
	// Namespace is the path to its namespace; "": the resource's own.
	Namespace string `json:"namespace,omitempty"`
	// StatusFields are fields at the top of the object's status whose change triggers too.
	StatusFields []string `json:"statusFields,omitempty"`
}

// GroupKind names a kind in any version.
type GroupKind struct {
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
}

// Triggers are settings of a watch with any content but a chart.
type Triggers struct {
	// ManageStatus is whether the status of resources is written; nil: yes.
	ManageStatus *bool `watch:"manageStatus"`
	// Blacklist has kinds of children whose changes trigger nothing.
	Blacklist []GroupKind `watch:"blacklist"`
	// WatchAnnotationsChanges makes each change of an annotation trigger.
	WatchAnnotationsChanges bool `watch:"watchAnnotationsChanges"`
}

// Finalizer is the content that must succeed before a resource is gone.
type Finalizer struct {
	// Name is the entry of metadata.finalizers, such as cache.example.com/finalizer.
	Name string `json:"name"`
	// Role or Playbook is the content that runs; "" and "": the content of the watch.
	Role     string `json:"role,omitempty"`
	Playbook string `json:"playbook,omitempty"`
	// Vars go over those of the watch. They are trusted.
	Vars map[string]any `json:"vars,omitempty"`
}

// AnsibleSettings are settings of roles and playbooks.
type AnsibleSettings struct {
	// Vars are variables that go over the resource's. They are trusted: templates in them are
	// evaluated.
	Vars map[string]any `watch:"vars"`
	// Finalizer is the content that runs at a deletion; nil: nothing runs.
	Finalizer *Finalizer `watch:"finalizer"`
	// SnakeCaseParameters is whether spec.fooBar is the variable foo_bar; nil: yes.
	SnakeCaseParameters *bool `watch:"snakeCaseParameters"`
	// MarkUnsafe is whether templates in resources stay text; nil: yes. With false, a user who may
	// write such a resource can run code in the manager.
	MarkUnsafe *bool `watch:"markUnsafe"`
	// MaxRunnerArtifacts is how many runs of a resource keep their artifacts; 0 is 20, less than
	// 0 all.
	MaxRunnerArtifacts int `watch:"maxRunnerArtifacts"`
	// Verbosity is a number of -v, 0 to 7; nil: Options.AnsibleVerbosity.
	Verbosity *int `watch:"verbosity"`
	// Warm is whether runs may be forked from a server; nil: yes.
	Warm *bool `watch:"warm"`
	// Executor is where runs execute: local, which is in the manager, or job; "": local.
	Executor string `watch:"executor"`
	// Job says how Jobs look in which runs execute; nil: their pods are as the manager's own.
	Job *Job `watch:"job"`
}

// Job says how the Jobs look in which runs execute.
type Job struct {
	// PodTemplate is merged strategically over the manager's own pod.
	PodTemplate *corev1.PodTemplateSpec `json:"podTemplate,omitempty"`
	// Labels and Annotations are those of the Job itself.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ValuesFrom names an object from which releases take values.
type ValuesFrom struct {
	// Kind is Secret or ConfigMap.
	Kind string `json:"kind"`
	// Name is a name, or a path into the resource such as spec.passwordSecret.
	Name string `json:"name"`
	// Key is that of the object's data; "": values.yaml.
	Key string `json:"key,omitempty"`
	// TargetPath leads to the value that the data becomes, as a text, such as auth.password; "":
	// the data is a YAML mapping of values.
	TargetPath string `json:"targetPath,omitempty"`
	// Optional passes over an object or key that is not there.
	Optional bool `json:"optional,omitempty"`
}

// DriftIgnore names fields of a kind of objects.
type DriftIgnore struct {
	Kind string `json:"kind"`
	// Group is that of the kind; "": of any group.
	Group string `json:"group,omitempty"`
	// Name is that of the one object that is meant; "": all of the kind.
	Name string `json:"name,omitempty"`
	// Pointers are JSON pointers (RFC 6901) such as /spec/replicas. In a list, a token is the index
	// of an entry, or key=value such as name=app, or * for all entries.
	Pointers []string `json:"pointers"`
}
