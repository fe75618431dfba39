package describe

import (
	"bytes"
	"regexp"
	"slices"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"
)

// CRD is the kind that a CustomResourceDefinition defines.
type CRD struct {
	Group, Kind, Plural string
	Namespaced          bool
}

// Lookup is the kind that a template looks up.
type Lookup struct{ APIVersion, Kind string }

// manifest has the fields that are read of an object.
type manifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name, Namespace, GenerateName string
		Annotations                   map[string]string
	} `json:"metadata"`
	// Fields that other kinds have in other forms.
	Rules           any `json:"rules"`
	AggregationRule any `json:"aggregationRule"`
	RoleRef         any `json:"roleRef"`
	Spec            any `json:"spec"`
}

// ofActions finds the events at which a hook runs, except those of helm test.
var ofActions = regexp.MustCompile(`\b(pre|post)-(install|upgrade|rollback|delete)\b`)

func (m manifest) object() Object {
	o := Object{APIVersion: m.APIVersion, Kind: m.Kind, Name: m.Metadata.Name, Namespace: m.Metadata.Namespace}
	events := m.Metadata.Annotations["helm.sh/hook"]
	o.Hook = events != ""
	o.Nameless = m.Metadata.Name == "" && m.Metadata.GenerateName != "" && ofActions.MatchString(events)
	switch m.Kind {
	case "Role", "ClusterRole":
		o.Aggregates = m.AggregationRule != nil
		again(m.Rules, &o.Rules)
	case "RoleBinding", "ClusterRoleBinding":
		again(m.RoleRef, &o.RoleRef)
	case "CustomResourceDefinition":
		o.Defines = m.crd()
	}
	return o
}

func (m manifest) crd() CRD {
	var spec struct {
		Group, Scope string
		Names        struct{ Kind, Plural string }
	}
	again(m.Spec, &spec)
	return CRD{spec.Group, spec.Names.Kind, spec.Names.Plural, spec.Scope == "Namespaced"}
}

// again converts a value to the type of to. It leaves out parts of another type: the API server
// will refuse them.
func again[T any](value any, to *T) {
	text, err := yaml.Marshal(value)
	if err != nil || yaml.Unmarshal(text, to) != nil {
		var none T
		*to = none
	}
}

// crds returns the CRDs in the directory crds of a chart and of its dependencies.
func crds(c *chart.Chart) (found []CRD) {
	for _, file := range c.CRDObjects() {
		for document := range bytes.SplitSeq(append([]byte("\n"), file.File.Data...), []byte("\n---")) {
			var m manifest
			if yaml.Unmarshal(document, &m) == nil && m.Kind == "CustomResourceDefinition" {
				found = append(found, m.crd())
			}
		}
	}
	return found
}

var (
	aLookup    = regexp.MustCompile(`[({|\s]lookup\s+("[^"\s]*"|\S+)\s+("[^"\s]*"|\S+)`)
	aPlainText = regexp.MustCompile(`^"[^"]+"$`)
	aComment   = regexp.MustCompile(`(?s)\{\{-?\s*/\*.*?\*/\s*-?\}\}`)
)

// lookups returns the kinds that the templates of a chart and of its dependencies look up.
func lookups(c *chart.Chart) (found []Lookup, more bool) {
	for _, file := range c.Templates {
		for _, match := range aLookup.FindAllStringSubmatch(aComment.ReplaceAllString(string(file.Data), ""), -1) {
			if !aPlainText.MatchString(match[1]) || !aPlainText.MatchString(match[2]) {
				more = true
				continue
			}
			one := Lookup{match[1][1 : len(match[1])-1], match[2][1 : len(match[2])-1]}
			if !slices.Contains(found, one) {
				found = append(found, one)
			}
		}
	}
	for _, dependency := range c.Dependencies() {
		others, unclear := lookups(dependency)
		found, more = append(found, others...), more || unclear
	}
	return found, more
}
