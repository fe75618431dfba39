package watches

import "errors"

// Chart is the Helm chart of a watch, and how its releases are kept.
type Chart struct {
	// Path is the absolute path of a chart's directory or archive.
	Path string
	// Overrides are set over the CR's spec. They are trusted.
	Overrides []Override `json:",omitempty"`
	// DryRun is operator-sdk's dryRunOption. It has no effect: nothing is rendered to find
	// out whether a release is in need of an upgrade.
	DryRun string `json:"-"`
	// MaxHistory is the number of revisions kept of a release; 0 keeps all.
	MaxHistory int
	// Wait makes a run wait until the objects of the release are ready.
	Wait bool
	// Drift says what is done about objects that others have changed.
	Drift Drift
	// DriftIgnore are fields that others may change.
	DriftIgnore []DriftIgnore `json:",omitempty"`
	// Adopt takes over objects that exist and belong to no release.
	Adopt bool
	// Apply says who merges the chart's objects with those that are there.
	Apply Apply
	// CRDs says what is done with the files in the chart's directory crds.
	CRDs CRDs
	// TemplatesInSpec are the paths of the spec whose text may hold templates. AllTemplates
	// allows them everywhere.
	TemplatesInSpec []string `json:",omitempty"`
	AllTemplates    bool     `json:",omitempty"`
	// ReleaseName and ReleaseNamespace say what a CR's release is called, and in which namespace
	// it is. ReleaseOf evaluates them.
	ReleaseName      ReleaseText `json:",omitzero"`
	ReleaseNamespace ReleaseText `json:",omitzero"`
	// ValuesFrom are objects from which releases take values, the weakest first. ValuesFromInSpec
	// is the path at which a CR may list further ones. ValuesSourcesOf evaluates them.
	ValuesFrom       []ValuesFrom `json:",omitempty"`
	ValuesFromInSpec Path         `json:",omitempty"`
}

// SetMaxHistory sets the field of the watch's chart. Copies of the watch keep theirs.
func (w *Watch) SetMaxHistory(revisions int) error {
	if w.Chart == nil {
		return errors.New("the watch has no chart")
	}
	chart := *w.Chart
	chart.MaxHistory = revisions
	w.Chart = &chart
	return nil
}

// Override is one entry of overrideValues, with environment variables and templates in its
// strings as the file has them.
type Override struct {
	// Key is a path such as image.repository, as Helm's --set takes it.
	Key string
	// Value has the types of JSON.
	Value any
	Line  int `json:"-"`
}

// Drift is the manager's answer to foreign changes of objects.
type Drift string

// The values of drift.
const (
	DriftRepair Drift = "repair"
	DriftWarn   Drift = "warn"
	DriftOff    Drift = "off"
)

// Apply is who merges the objects of a chart with those that are there: the API server by
// server-side apply, or the client by patches, as Helm 3 did.
type Apply string

// The values of apply.
const (
	ApplyServer Apply = "server"
	ApplyClient Apply = "client"
)

// CRDs is how the manager treats the files in a chart's directory crds.
type CRDs string

// The values of crds.
const (
	CRDsCreate  CRDs = "create"
	CRDsReplace CRDs = "replace"
	CRDsSkip    CRDs = "skip"
)

// DriftIgnore names fields of a kind of objects.
type DriftIgnore struct {
	Kind string `json:"kind"`
	// Group is that of the kind; "": of any group.
	Group string `json:"group,omitempty"`
	// Name is that of the one object that is meant; "": all of the kind.
	Name string `json:"name,omitempty"`
	// Pointers are JSON pointers (RFC 6901) such as /spec/replicas.
	Pointers []string `json:"pointers"`
}

// dangers returns the dangerous settings of the chart, none if there is no chart.
func (c *Chart) dangers() []Danger {
	const who = "everybody who may write such a resource can have templates evaluated"
	switch {
	case c == nil:
		return nil
	case c.AllTemplates:
		return []Danger{{"templatesInSpec is true", who + ", which may look up every object that this operator may read", "name the paths that need templates, or remove the line"}}
	case len(c.TemplatesInSpec) > 0:
		return []Danger{{"templatesInSpec has paths", who + " there", "let only administrators write this kind, or remove the line"}}
	default:
		return nil
	}
}
