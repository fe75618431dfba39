package ensign

import (
	"errors"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/operator"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Watch is a kind and the content that reconciles it: an entry of a file that LoadWatches has
// read, or one that a program makes as a Role, Playbook, Chart or Custom.
type Watch interface {
	// WatchedKind returns the kind.
	WatchedKind() schema.GroupVersionKind

	// resolve checks the watch as an entry of watches.yaml, and finds its content.
	resolve(m *operator.Manager) (operator.Watch, error)
}

// Kind is the kind that a watch reconciles.
type Kind = schema.GroupVersionKind

// Role is a watch whose content is an Ansible role.
type Role struct {
	Kind Kind
	// Role is the name of a role, namespace.collection.role, or a path.
	Role string `watch:"role"`

	Settings
	Triggers
	AnsibleSettings
}

// Playbook is a watch whose content is an Ansible playbook.
type Playbook struct {
	Kind Kind
	// Playbook is a path, relative to Options.Dir.
	Playbook string `watch:"playbook"`

	Settings
	Triggers
	AnsibleSettings
}

// Chart is a watch whose content is a Helm chart. Values that are stronger than the resource's are
// given by the option OverrideValues.
type Chart struct {
	Kind Kind
	// Chart is the path of a chart's directory or archive, relative to Options.Dir.
	Chart string `watch:"chart"`

	// MaxHistory is how many revisions of a release are kept; 0 is 10, less than 0 all.
	MaxHistory int `watch:"maxHistory"`
	// Wait makes a run wait until the objects of the release are ready.
	Wait bool `watch:"wait"`
	// Drift is the manager's answer to foreign changes of objects: repair, warn or off; "": repair.
	Drift string `watch:"drift"`
	// DriftIgnore are fields that others may change.
	DriftIgnore []DriftIgnore `watch:"driftIgnore"`
	// Adopt takes over objects that exist and belong to no release.
	Adopt bool `watch:"adopt"`
	// Apply is who merges the chart's objects with those that are there: server or client; "": server.
	Apply string `watch:"apply"`
	// CRDs is how the manager treats the chart's directory crds: create, replace or skip; "":
	// create.
	CRDs string `watch:"crds"`
	// TemplatesInSpec are paths of the spec, such as spec.config, whose text may hold templates
	// that the chart evaluates.
	TemplatesInSpec []string `watch:"templatesInSpec"`
	// ReleaseName and ReleaseNamespace are texts, or paths into the resource such as
	// spec.target; "": the resource's own name and namespace.
	ReleaseName      string `watch:"releaseName"`
	ReleaseNamespace string `watch:"releaseNamespace"`
	// ValuesFrom are objects in the resource's namespace from which its release takes values, the
	// weakest first. The spec is stronger.
	ValuesFrom []ValuesFrom `watch:"valuesFrom"`
	// ValuesFromInSpec is the path of a list, such as spec.valuesFrom, in which a resource may name
	// more of them; "": there is none. The writers of the resource can then take any Secret of
	// its namespace into its release.
	ValuesFromInSpec string `watch:"valuesFromInSpec"`
	// Executor is where Helm's actions execute: local, which is in the manager, or job; "": local.
	Executor string `watch:"executor"`
	// Job says how Jobs look in which they execute; nil: their pods are as the manager's own.
	Job *Job `watch:"job"`

	Settings
}

// Custom is a watch whose kind of content the program brings.
type Custom struct {
	Kind Kind
	// Engine runs the content. If its Digest is not "", resources that succeeded do not run again
	// after a restart.
	Engine content.Engine
	// Finalizer is the entry of metadata.finalizers by which the content runs at a deletion; "":
	// nothing does, and children go by their owner references.
	Finalizer string

	// Heading stands in the log above a run's message of several lines; "": Content.
	Heading string
	// AnnotationPrefix begins the annotations by which resources control their runs, and ends
	// with a slash; "": ensign-operator.github.io/.
	AnnotationPrefix string
	// Annotations are names, without that prefix, of those that the engine itself reads.
	Annotations []string
	// ChecksEachPeriod is true if Work.Settled decides after each period whether a run is needed.
	// If false, each period leads to a run.
	ChecksEachPeriod bool
	// Executor is where runs execute: local, which is in the manager, or job; "": local. With job, the
	// program in the pod gives RunAgent the same watch: its Engine prepares the resource again there, and
	// runs it. The other methods of Engine and Work are called in the manager.
	Executor string `watch:"executor"`
	// Job says how Jobs look in which runs execute; nil: their pods are as the manager's own.
	Job *Job `watch:"job"`

	Settings
	Triggers
}

// WatchedKind implements Watch.
func (w Role) WatchedKind() schema.GroupVersionKind { return w.Kind }

// WatchedKind implements Watch.
func (w Playbook) WatchedKind() schema.GroupVersionKind { return w.Kind }

// WatchedKind implements Watch.
func (w Chart) WatchedKind() schema.GroupVersionKind { return w.Kind }

// WatchedKind implements Watch.
func (w Custom) WatchedKind() schema.GroupVersionKind { return w.Kind }

func (w Role) resolve(m *operator.Manager) (operator.Watch, error) {
	return m.MakeWatch("ensign.Role", fieldsOf(w.Kind, w), nil)
}

func (w Playbook) resolve(m *operator.Manager) (operator.Watch, error) {
	return m.MakeWatch("ensign.Playbook", fieldsOf(w.Kind, w), nil)
}

func (w Chart) resolve(m *operator.Manager) (operator.Watch, error) {
	return m.MakeWatch("ensign.Chart", fieldsOf(w.Kind, w), nil)
}

func (w Custom) resolve(m *operator.Manager) (operator.Watch, error) {
	if w.Engine == nil {
		return operator.Watch{}, errors.New("ensign.Custom: Engine is nil; give the engine that runs the content")
	}
	fields := fieldsOf(w.Kind, w)
	if w.Finalizer != "" {
		fields = append(fields, watches.Field{Name: "finalizer", GoName: "Finalizer", Value: Finalizer{Name: w.Finalizer}})
	}
	made, err := m.MakeWatch("ensign.Custom", fields, &watches.ContentKind{
		Heading: w.Heading, AnnotationPrefix: w.AnnotationPrefix, Annotations: w.Annotations, ChecksEachPeriod: w.ChecksEachPeriod,
	})
	made.Engine = w.Engine
	return made, err
}

// loaded is a watch of a file.
type loaded struct{ entry watches.Watch }

// WatchedKind implements Watch.
func (w loaded) WatchedKind() schema.GroupVersionKind { return w.entry.GVK }

func (w loaded) resolve(*operator.Manager) (operator.Watch, error) {
	return operator.Watch{Watch: w.entry}, nil
}

// fieldsOf returns the fields of a watch that have a value, by their tags.
func fieldsOf(kind Kind, watch any) []watches.Field {
	fields := []watches.Field{
		{Name: "group", GoName: "Kind.Group", Value: kind.Group}, {Name: "version", GoName: "Kind.Version", Value: kind.Version}, {Name: "kind", GoName: "Kind.Kind", Value: kind.Kind},
	}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(watch)) {
		value := reflect.ValueOf(watch).FieldByIndex(f.Index)
		if name := f.Tag.Get("watch"); name != "" && !value.IsZero() {
			fields = append(fields, watches.Field{Name: name, GoName: f.Name, Value: inFile(name, value.Interface())})
		}
	}
	return fields
}

// inFile returns a value as it stands in watches.yaml. Where 0 means something there, a number
// below 0 means it in Go, and 0 is the default.
func inFile(name string, value any) any {
	switch v := value.(type) {
	case time.Duration:
		if v < 0 && name == "timeout" {
			v = 0
		}
		return v.String()
	case int:
		if name == "maxHistory" || name == "maxRunnerArtifacts" {
			return max(v, 0)
		}
	}
	return value
}
