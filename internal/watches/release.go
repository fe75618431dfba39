package watches

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ReleaseText is releaseName or releaseNamespace of a chart: a text that is the same for all CRs,
// or a path at which each CR has its own. The zero ReleaseText is neither: the CR's own name or
// namespace counts.
type ReleaseText struct {
	Fixed string `json:",omitempty"`
	// Path begins with spec or metadata, and has no EachElement.
	Path Path `json:",omitempty"`
}

// maxReleaseName is Helm's limit for the name of a release, in bytes.
const maxReleaseName = 53

// MovedError is the error of a CR whose release would have another name or namespace than the one
// that it has. Nothing would uninstall the former one.
type MovedError struct {
	// Namespace and Name are those of the release that the CR has, as its status says. A user who
	// may write the CR may have written the status: it proves nothing.
	Namespace, Name string
	// To is the release for which watches.yaml and the CR ask now.
	To string
}

// Error implements error.
func (e *MovedError) Error() string {
	return fmt.Sprintf("the release of this resource is %q in the namespace %q and cannot become %s: releases do not move; undo the change, or delete the resource and create it again",
		e.Name, e.Namespace, e.To)
}

// ReleaseOf returns the namespace and the name of a CR's release. cr is the whole object. Without
// releaseNamespace and releaseName, and where the CR has nothing at their path, they are the CR's
// own. The error says in words how to change the CR or the watch, and no retry fixes it; it is a
// *MovedError where the CR has a release elsewhere.
func (c *Chart) ReleaseOf(cr map[string]any) (namespace, name string, err error) {
	own := func(field string) string {
		text, _, _ := unstructured.NestedString(cr, "metadata", field)
		return text
	}
	namespace, name = own("namespace"), own("name")
	has := currentRelease(cr, namespace)
	namespace, err = c.ReleaseNamespace.of(cr, namespace)
	if err == nil {
		name, err = c.ReleaseName.of(cr, name)
	}
	switch {
	case has != nil && err != nil:
		has.To = "the release that the resource names now, which cannot be read: " + err.Error()
		return "", "", has
	case err != nil:
		return "", "", err
	case has != nil && (has.Namespace != namespace || has.Name != name):
		has.To = fmt.Sprintf("%s in the namespace %s", Quoted(name), Quoted(namespace))
		return "", "", has
	case namespace == "":
		return "", "", c.noNamespace(cr)
	}
	if err := errors.Join(c.checkNamespace(namespace), c.checkName(name)); err != nil {
		return "", "", err
	}
	return namespace, name, nil
}

// WantedRelease is ReleaseOf by the CR's spec alone.
func (c *Chart) WantedRelease(cr map[string]any) (namespace, name string, err error) {
	without := maps.Clone(cr)
	delete(without, "status")
	return c.ReleaseOf(without)
}

// currentRelease returns the release that the CR's status names: a deployed one, or one of which
// there was an attempt. It is nil if the status names none. Statuses that other operators and older
// managers wrote have no namespace: the release is in the CR's.
func currentRelease(cr map[string]any, crNamespace string) *MovedError {
	for _, field := range []string{"deployedRelease", "attemptedRelease"} {
		name, _, _ := unstructured.NestedString(cr, "status", field, "name")
		namespace, _, _ := unstructured.NestedString(cr, "status", field, "namespace")
		if namespace == "" {
			namespace = crNamespace
		}
		if name != "" && namespace != "" {
			return &MovedError{Namespace: namespace, Name: name}
		}
	}
	return nil
}

// of returns the text for a CR, and otherwise where there is none.
func (t ReleaseText) of(cr map[string]any, otherwise string) (string, error) {
	if t.Fixed != "" {
		return t.Fixed, nil
	}
	if t.Path == nil {
		return otherwise, nil
	}
	value, found, err := unstructured.NestedFieldNoCopy(cr, t.Path...)
	if err != nil || !found || value == nil {
		return otherwise, nil //nolint:nilerr // The path leads nowhere: there is nothing at it.
	}
	text, ok := value.(string)
	if !ok {
		return "", fmt.Errorf("%s is not a string", t.Path)
	}
	if text == "" {
		return otherwise, nil
	}
	return text, nil
}

func (c *Chart) noNamespace(cr map[string]any) error {
	kind, _ := cr["kind"].(string)
	if c.ReleaseNamespace.Path != nil {
		return fmt.Errorf("a chart needs a namespace for its release; the kind %s is cluster-scoped: set %s", kind, c.ReleaseNamespace.Path)
	}
	return fmt.Errorf("a chart needs a namespace for its release; the kind %s is cluster-scoped: give the watch releaseNamespace", kind)
}

func (c *Chart) checkNamespace(namespace string) error {
	if len(validation.IsDNS1123Label(namespace)) == 0 {
		return nil
	}
	return fmt.Errorf("%s is not a valid namespace name for the release: give %s lower-case letters, digits and dashes, at most %d characters",
		Quoted(namespace), c.ReleaseNamespace.source("the resource's namespace"), validation.DNS1123LabelMaxLength)
}

func (c *Chart) checkName(name string) error {
	source := c.ReleaseName.source("the resource's name")
	switch {
	case len(releaseNameFaults(name)) == 0:
		return nil
	case len(name) > maxReleaseName:
		return fmt.Errorf("the name of the release, %s, has %d characters, and Helm takes %d at most: shorten %s, or give the watch another releaseName",
			Quoted(name), len(name), maxReleaseName, source)
	default:
		return fmt.Errorf("%s is not a valid release name: give %s lower-case letters, digits, dashes and dots", Quoted(name), source)
	}
}

// releaseNameFaults says what Helm refuses in the name of a release.
func releaseNameFaults(name string) []string {
	faults := validation.IsDNS1123Subdomain(name)
	if len(name) > maxReleaseName {
		faults = append(faults, validation.MaxLenError(maxReleaseName))
	}
	return faults
}

// source names the source of the text of a CR.
func (t ReleaseText) source(otherwise string) string {
	if t.Path != nil {
		return t.Path.String()
	}
	return otherwise
}

// releaseText returns the parser of releaseName or releaseNamespace. A text that begins with
// spec. or metadata. is a path: no namespace, and hardly a release, is called like one.
func (p *parser) releaseText(into *ReleaseText, faults func(string) []string, allowed string) fieldParser {
	allowed += ", or a path into the resource such as spec.target or metadata.name"
	return func(field string, n *yaml.Node) {
		var given textField
		p.text(&given)(field, n)
		switch {
		case !p.notEmpty(field, given, allowed):
		case strings.HasPrefix(given.text, "spec."), strings.HasPrefix(given.text, "metadata."):
			into.Path = parsePath(given.text)
			if into.Path == nil || strings.Contains(given.text, EachElement) {
				p.addFault(n.Line, "%s: %q is not a path to one string; write %s", field, given.text, allowed)
			}
		default:
			into.Fixed = given.text
			p.validName(field, given, faults(given.text), allowed)
		}
	}
}
