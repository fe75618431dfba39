package watches

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ensign-operator/ensign/internal/suggest"
)

// ValuesFrom names an object from which each release of a watch takes values.
type ValuesFrom struct {
	// Kind is SecretKind or ConfigMapKind.
	Kind string
	// Name is the object's, the same for all CRs or at a path of each CR.
	Name ReleaseText
	ValuesAt
}

// ValuesAt says what of an object is taken, and where it goes.
type ValuesAt struct {
	// Key is that of the object's data.
	Key string
	// TargetPath leads to the value that the data becomes, as a text; nil: the data is a YAML
	// mapping of values.
	TargetPath []string `json:",omitempty"`
	// Optional passes over an object or key that is not there.
	Optional bool `json:",omitempty"`
}

// The kinds of objects that values are taken from.
const (
	SecretKind    = "Secret"
	ConfigMapKind = "ConfigMap"
)

const (
	defaultValuesKey = "values.yaml"
	// maxValuesSources bounds the entries of a CR, and maxTargetPath the names of a path.
	maxValuesSources = 32
	maxTargetPath    = 30
)

// ValuesSource is an object in a CR's namespace from which its release takes values.
type ValuesSource struct {
	Kind, Name string
	ValuesAt
}

// String names the object and the key, for people.
func (s ValuesSource) String() string { return fmt.Sprintf("%s %s, key %s", s.Kind, s.Name, s.Key) }

// ValuesSourcesOf returns the objects from which the release of a CR takes values, the weakest
// first: those of the watch, then those of the CR. cr is the whole object. They are in the CR's
// namespace: a CR must not reach objects elsewhere. The error says in words how to change the CR.
func (c *Chart) ValuesSourcesOf(cr map[string]any) (sources []ValuesSource, err error) {
	for i, from := range c.ValuesFrom {
		name, err := from.Name.of(cr, "")
		switch {
		case err != nil:
			return nil, fmt.Errorf("valuesFrom[%d] of the watch: %w", i, err)
		case name == "" && from.Optional:
			continue
		case name == "":
			return nil, fmt.Errorf("%s is empty: write the name of the %s that has values for this release", from.Name.Path, from.Kind)
		case len(validation.IsDNS1123Subdomain(name)) > 0:
			return nil, fmt.Errorf("%s: %s is not a valid name of a %s", from.Name.source("valuesFrom"), Quoted(name), from.Kind)
		}
		sources = append(sources, ValuesSource{Kind: from.Kind, Name: name, ValuesAt: from.ValuesAt})
	}
	listed, err := c.listedValues(cr)
	if err != nil {
		return nil, err
	}
	sources = append(sources, listed...)
	if namespace, _, _ := unstructured.NestedString(cr, "metadata", "namespace"); namespace == "" && len(sources) > 0 {
		return nil, errors.New("valuesFrom takes values from objects in the resource's own namespace, and a cluster-scoped resource has none")
	}
	return sources, nil
}

// listedValues returns the sources that the CR itself lists, where the watch allows that.
func (c *Chart) listedValues(cr map[string]any) ([]ValuesSource, error) {
	if c.ValuesFromInSpec == nil {
		return nil, nil
	}
	value, found, err := unstructured.NestedFieldNoCopy(cr, c.ValuesFromInSpec...)
	if err != nil || !found || value == nil {
		return nil, nil //nolint:nilerr // The path leads nowhere: there is nothing at it.
	}
	entries, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("%s is not a list", c.ValuesFromInSpec)
	}
	if len(entries) > maxValuesSources {
		return nil, fmt.Errorf("%s has %d entries, and may have %d", c.ValuesFromInSpec, len(entries), maxValuesSources)
	}
	var sources []ValuesSource
	for i, entry := range entries {
		source, err := listedSource(entry)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", c.ValuesFromInSpec, i, err)
		}
		sources = append(sources, source)
	}
	return sources, nil
}

func listedSource(entry any) (s ValuesSource, err error) {
	fields, ok := entry.(map[string]any)
	if !ok {
		return s, errors.New("it is not a mapping")
	}
	texts := map[string]string{"kind": "", "name": "", "key": defaultValuesKey, "targetPath": ""}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if field == "optional" {
			if s.Optional, ok = fields[field].(bool); !ok {
				return s, errors.New("optional is neither true nor false")
			}
			continue
		}
		if _, known := texts[field]; !known {
			names := append(slices.Sorted(maps.Keys(texts)), "optional")
			return s, fmt.Errorf("%s is not a field of it%s; it has %s", Quoted(field), suggest.DidYouMean(field, names), strings.Join(names, ", "))
		}
		if texts[field], ok = fields[field].(string); !ok {
			return s, fmt.Errorf("%s is not a string", field)
		}
	}
	s.Kind, s.Name, s.Key = texts["kind"], texts["name"], texts["key"]
	switch {
	case s.Kind != SecretKind && s.Kind != ConfigMapKind:
		return s, fmt.Errorf("kind: %s is neither Secret nor ConfigMap", Quoted(s.Kind))
	case len(validation.IsDNS1123Subdomain(s.Name)) > 0:
		return s, fmt.Errorf("name: %s is not a valid name of a %s", Quoted(s.Name), s.Kind)
	case len(validation.IsConfigMapKey(s.Key)) > 0:
		return s, fmt.Errorf("key: %s is not a valid key of a %s", Quoted(s.Key), s.Kind)
	}
	if _, given := fields["targetPath"]; given {
		if s.TargetPath, err = parseTargetPath(texts["targetPath"]); err != nil {
			return s, fmt.Errorf("targetPath: %w", err)
		}
	}
	return s, nil
}

// parseTargetPath parses a path such as auth.password. A backslash before a dot makes the dot a
// part of a name. Elements of lists cannot be set: the rest of the list would be unknown.
func parseTargetPath(text string) (path []string, err error) {
	const dot = "\x00"
	if strings.Contains(text, dot) {
		return nil, fmt.Errorf("%s is not a path", Quoted(text))
	}
	path = strings.Split(strings.ReplaceAll(text, `\.`, dot), ".")
	if len(path) > maxTargetPath {
		return nil, fmt.Errorf("a path has %d names at most", maxTargetPath)
	}
	for i, name := range path {
		if name == "" || strings.ContainsAny(name, "[]{}") {
			return nil, fmt.Errorf(`%s is not a path of names such as auth.password or annotations.example\.com/key; an element of a list cannot be set: give the whole list, in a YAML mapping without targetPath`, Quoted(text))
		}
		path[i] = strings.ReplaceAll(name, dot, ".")
	}
	return path, nil
}

// valuesReferences returns the references to the objects that values are taken from.
func (c *Chart) valuesReferences() []Reference {
	var all []Reference
	for _, from := range c.ValuesFrom {
		all = append(all, Reference{GVK: schema.GroupVersionKind{Version: "v1", Kind: from.Kind}, Name: from.Name.Path, Fixed: from.Name.Fixed})
	}
	if c.ValuesFromInSpec != nil {
		for _, kind := range []string{SecretKind, ConfigMapKind} {
			all = append(all, Reference{
				GVK: schema.GroupVersionKind{Version: "v1", Kind: kind}, Name: append(slices.Clone(c.ValuesFromInSpec), EachElement, "name"), OfListedKind: true,
			})
		}
	}
	return all
}

// ValuesKinds returns the kinds of the objects that values may be taken from, sorted.
func (c *Chart) ValuesKinds() []string {
	var kinds []string
	for _, reference := range c.valuesReferences() {
		kinds = append(kinds, reference.GVK.Kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// valuesFrom returns the parser of an entry of valuesFrom.
func (p *parser) valuesFrom(c *rawChart) fieldParser {
	return func(field string, n *yaml.Node) {
		var kind, key, target textField
		from, named := ValuesFrom{}, false
		p.mapping("an entry of valuesFrom", map[string]fieldParser{
			"kind": p.oneOf(&kind, SecretKind, ConfigMapKind),
			"name": func(field string, n *yaml.Node) {
				named = true
				p.releaseText(&from.Name, validation.IsDNS1123Subdomain, "the name of an object in the resource's namespace")(field, n)
			},
			"key": p.text(&key), "targetPath": p.text(&target), "optional": p.boolean(&from.Optional),
		})(field, n)
		if followAlias(n).Kind != yaml.MappingNode {
			return
		}
		if !kind.isSet() {
			p.required("kind of valuesFrom", kind, n.Line, "Secret")
		}
		if !named {
			p.addFault(n.Line, "name of valuesFrom is missing; add a name, or a path into the resource such as spec.passwordSecret")
		}
		from.Kind, from.Key = kind.text, defaultValuesKey
		if key.isSet() && p.notEmpty("key", key, "a key of the object's data such as values.yaml") {
			p.validName("key", key, validation.IsConfigMapKey(key.text), "a key of the object's data such as values.yaml")
			from.Key = key.text
		}
		if target.isSet() && p.notEmpty("targetPath", target, "a path of values such as auth.password") {
			var err error
			if from.TargetPath, err = parseTargetPath(target.text); err != nil {
				p.addFault(target.line, "targetPath: %v", err)
			}
		}
		c.ValuesFrom = append(c.ValuesFrom, from)
	}
}

// valuesFromInSpec returns the parser of the path at which CRs list their own sources.
func (p *parser) valuesFromInSpec(c *rawChart) fieldParser {
	return func(field string, n *yaml.Node) {
		var path textField
		p.text(&path)(field, n)
		const allowed = "the path of a list in the resource such as spec.valuesFrom"
		if !p.notEmpty(field, path, allowed) {
			return
		}
		c.ValuesFromInSpec = parsePath(path.text)
		if len(c.ValuesFromInSpec) < 2 || c.ValuesFromInSpec[0] != "spec" || slices.Contains(c.ValuesFromInSpec, EachElement) {
			p.addFault(path.line, "%s: %q is not a path to a list of the spec; write %s", field, path.text, allowed)
		}
	}
}
