package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	"github.com/ensign-operator/ensign/internal/author/kinds"
	crds "github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/chart/describe"
)

// Kind is a kind to add to a project, and the input of its templates.
type Kind struct {
	Group, Version, Kind string
	// NoGroup makes the project's domain the API group of the kind.
	NoGroup bool
	// APIVersion names the API group and the version, instead of Group and Version.
	APIVersion string
	// GenerateRole and GeneratePlaybook write the content; without them it has to be there.
	GenerateRole, GeneratePlaybook bool
	// Plural is the name of the kind's resources; "" for the usual plural.
	Plural string
	// Finalizer writes content for the deletion, too.
	Finalizer bool
	// Namespaced is false for a cluster-scoped kind.
	Namespaced bool
	// Chart is the path of a Helm chart that reconciles the kind, instead of a role or playbook.
	Chart string
	// ChartNamed is how a person has named the chart, which was fetched to Chart; "" for a path.
	ChartNamed string
	// Render renders the chart at an absolute path with a spec. It is needed for a Chart.
	Render func(path string, spec map[string]any) (describe.Rendered, error)
	// ValuesFile is a YAML file; the schema of the spec gets the types of its values.
	ValuesFile string
	// DefinitionOnly writes the CRD of a kind of the project again, and the changes that follow
	// elsewhere.
	DefinitionOnly bool

	// The rest is derived.
	Project
	APIGroup, Singular string
	// Role and Playbook name the content: one of them is set.
	Role, Playbook string
	// chartPath is the chart's place in the project.
	chartPath  string
	chart      *describe.Chart
	chartRules []string
	// SpecSchema is the schema of the spec, as YAML.
	SpecSchema   string
	SpecRequired bool
	// SampleSpec is a spec, and SampleVars are its variables, as YAML; "" for none.
	SampleSpec, SampleVars string
	// sample is the spec of the sample of a chart's kind.
	sample object
	// options are those of the role, for a definition that is written again.
	options []option
}

// taken are kinds of Kubernetes itself, as far as operators might choose their names.
const taken = `ConfigMap ControllerRevision CronJob DaemonSet Deployment Endpoints Event Ingress IngressClass Job Lease Namespace NetworkPolicy
	Node PersistentVolume PersistentVolumeClaim Pod PodTemplate ReplicaSet Role RoleBinding Secret Service ServiceAccount StatefulSet StorageClass`

// CreateAPI returns the plan that adds a kind to the project in a directory.
func CreateAPI(dir string, k Kind) (*Plan, error) {
	plan := &Plan{dir: dir}
	if err := k.addTo(plan); err != nil {
		return nil, err
	}
	return plan, nil
}

// addTo adds the kind to a plan.
func (k *Kind) addTo(plan *Plan) error {
	project, err := plan.project()
	if err != nil {
		return err
	}
	project.Program = k.Program
	k.Project = project
	if err := k.settle(plan); err != nil {
		return err
	}
	if err := k.derive(plan.dir); err != nil {
		return err
	}
	if k.IsReserved() {
		plan.Notes = append(plan.Notes, fmt.Sprintf("groups such as %s are the Kubernetes project's own: the CRD says that it is unapproved, by the annotation api-approved.kubernetes.io. If it is your project's to choose, take a domain that is yours (init --domain)", k.APIGroup))
	}
	if slices.Contains(strings.Fields(taken), k.Kind) && !k.DefinitionOnly {
		plan.Notes = append(plan.Notes, fmt.Sprintf("Kubernetes has a kind %s of its own, which kubectl means by %s: say %s.%s for yours, or choose another name", k.Kind, k.Singular, k.Plural, k.APIGroup))
	}
	if k.Chart != "" {
		err = k.useChart(plan)
	} else if k.ValuesFile == "" {
		err = k.describe(plan)
	}
	if err == nil && k.ValuesFile != "" {
		err = k.readValues(plan)
	}
	if err != nil {
		return err
	}
	plan.Sample = "config/samples/" + k.sampleName()
	paths := strings.NewReplacer("APIGROUP", k.APIGroup, "GROUP_VERSION_SINGULAR.yaml", k.sampleName(), "PLURAL", k.Plural, "SINGULAR", k.Singular, "ROLE", k.Role)
	if k.DefinitionOnly {
		return k.refresh(plan, paths)
	}
	err = render("kind", &k, paths, func(path string, content []byte) {
		if k.wants(path) {
			plan.create(path, content)
		}
	})
	if err != nil {
		return err
	}
	return k.enlist(plan)
}

// sampleName is the name of the file of the sample, as kubebuilder chooses it.
func (k *Kind) sampleName() string {
	return strings.TrimPrefix(fmt.Sprintf("%s_%s_%s.yaml", k.Group, k.Version, k.Singular), "_")
}

// wants reports whether the file belongs to the kind.
func (k *Kind) wants(path string) bool {
	isRole, isPlaybook := strings.HasPrefix(path, "roles/"), strings.HasPrefix(path, "playbooks/")
	switch {
	case !isRole && !isPlaybook:
		return true
	case strings.Contains(path, k.Singular+"_finalizer") && !k.Finalizer:
		return false
	case strings.Contains(path, k.Singular+"_finalizer"):
		return isRole == (k.Role != "")
	default:
		return isRole && k.GenerateRole || isPlaybook && k.GeneratePlaybook
	}
}

// derive checks the names, and sets the fields that follow from them.
func (k *Kind) derive(dir string) error {
	if err := k.check(); err != nil {
		return err
	}
	plural, singular := kinds.Words(k.Kind)
	if crd := crds.Of(crds.Load(filepath.Join(dir, "config", "crd")), schema.GroupKind{Group: k.APIGroup, Kind: k.Kind}); crd != nil {
		k.Plural = cmp.Or(k.Plural, crd.Plural)
	}
	k.Plural, k.Singular = cmp.Or(k.Plural, plural), singular
	for _, there := range k.Resources {
		switch same := there.Group == k.Group && strings.EqualFold(there.Kind, k.Kind); {
		case same && k.DefinitionOnly && there.Version == k.Version:
			return k.findContent(dir)
		case same && there.Version != k.Version:
			return fmt.Errorf("the project has the kind %s already, in %s (PROJECT), and a further version is for you to write: into spec.versions of config/crd/bases/%s_%s.yaml", there.Kind, k.apiVersion(there.Group, there.Version), k.APIGroup, k.Plural)
		case same:
			return fmt.Errorf("the project has the kind %s already, in %s (PROJECT); --crd-only writes its CRD again", there.Kind, k.apiVersion(there.Group, there.Version))
		case strings.EqualFold(there.Kind, k.Kind):
			return fmt.Errorf("the project has a kind %s already, in %s, and its role and sample have the same names: choose another kind", there.Kind, k.apiVersion(there.Group, there.Version))
		}
	}
	if k.DefinitionOnly {
		var there []string
		for _, r := range k.Resources {
			there = append(there, fmt.Sprintf("%s %s of group %s", r.Version, r.Kind, r.Group))
		}
		return fmt.Errorf("--crd-only: the project has no %s %s of group %s; it has (PROJECT): %s", k.Version, k.Kind, k.Group, cmp.Or(strings.Join(there, ", "), "none"))
	}
	return k.findContent(dir)
}

// findContent decides what runs for the kind.
func (k *Kind) findContent(dir string) error {
	playbook := "playbooks/" + k.Singular + ".yml"
	k.useChartOf(dir)
	hasRole, hasPlaybook := exists(dir, "roles/"+k.Singular), exists(dir, playbook)
	switch {
	case k.Chart != "":
	case k.ValuesFile != "" && (k.GenerateRole || k.GeneratePlaybook):
		return errors.New("--crd-from-values is for content that is there: --generate-role and --generate-playbook write an example with a spec of its own; write the role or playbook first, or leave the flag out")
	case k.GenerateRole && k.GeneratePlaybook:
		return errors.New("--generate-role and --generate-playbook: give one of them, because one of them reconciles the kind")
	case k.GenerateRole || !k.GeneratePlaybook && hasRole:
		k.Role = k.Singular
	case k.GeneratePlaybook || hasPlaybook:
		k.Playbook = playbook
	default:
		return fmt.Errorf("give --generate-role, --generate-playbook or --chart: there is neither roles/%s nor %s yet", k.Singular, playbook)
	}
	return nil
}

// useChartOf takes the chart of the kind in watches.yaml, for a definition that is written again.
func (k *Kind) useChartOf(dir string) {
	if !k.DefinitionOnly || k.Chart != "" || k.ValuesFile != "" {
		return
	}
	documents, _ := source.ReadYAML(filepath.Join(dir, "watches.yaml"))
	for _, document := range documents {
		for _, watch := range source.Items(document) {
			if chart := source.Scalar(watch, "chart"); chart != "" && source.Scalar(watch, "group") == k.APIGroup && source.Scalar(watch, "kind") == k.Kind {
				k.Chart = filepath.Join(dir, filepath.FromSlash(chart))
			}
		}
	}
}

// Content names the content in sentences.
func (k *Kind) Content() string {
	switch {
	case k.chartPath != "":
		return "the chart " + k.chartPath
	case k.Role != "":
		return "the role " + k.Role
	}
	return k.Playbook
}

// ObjectVariable returns the name of the variable that has the whole custom resource.
func (k *Kind) ObjectVariable() string {
	return extravars.ObjectVariableName(schema.GroupVersionKind{Group: k.APIGroup, Version: k.Version, Kind: k.Kind})
}

// IsReserved reports whether the API server takes the CRD only with a word on the approval
// of the Kubernetes project.
func (k *Kind) IsReserved() bool { return apihelpers.IsProtectedCommunityGroup(k.APIGroup) }

// readValues describes the spec by the file of --crd-from-values.
func (k *Kind) readValues(plan *Plan) error {
	text, err := os.ReadFile(k.ValuesFile)
	if err != nil {
		return fmt.Errorf("--crd-from-values: %w", err)
	}
	return k.describeValues(k.ValuesFile, text, plan)
}

func exists(dir, path string) bool {
	_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(path)))
	return err == nil
}

// apiVersion returns the API version of a kind of the project; its group may be the domain alone.
func (p Project) apiVersion(group, version string) string {
	return strings.TrimPrefix(group+"."+p.Domain, ".") + "/" + version
}
