package helmclient

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/chart/objects"
)

// Build implements kube.Interface. Its error names each faulty object and its template: errors of
// Kubernetes' libraries do not name an object that does not decode.
func (c *Client) Build(manifest io.Reader, validate bool) (kube.ResourceList, error) {
	text, err := io.ReadAll(manifest)
	if err != nil {
		return nil, err
	}
	build := func(text []byte) (kube.ResourceList, error) { return c.Client.Build(bytes.NewReader(text), validate) }
	all, err := build(text)
	if err == nil {
		return lastOnes(all), nil
	}
	located := locate(text, func(document []byte) error {
		_, err := build(document)
		return err
	})
	if located == nil {
		return nil, err // It is not about a single object.
	}
	return nil, located
}

// lastOnes returns the objects without those that come again further on: Helm applies objects of one kind
// at once, so that any of two would stay.
func lastOnes(all kube.ResourceList) (last kube.ResourceList) {
	for i, one := range all {
		if one.Name == "" || !all[i+1:].Contains(one) {
			last.Append(one)
		}
	}
	return last
}

// locate returns the errors of the documents of a manifest, each with the document's name; nil if
// there is none.
func locate(manifest []byte, check func(document []byte) error) error {
	var errs []error
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if err != nil { // The end: it reads from memory.
			return errors.Join(errs...)
		}
		if err := check(document); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w%s", describe(document), err, badKey(document)))
		}
	}
}

// badKey names the label or annotation at which the document may not decode, which the decoder does not.
func badKey(document []byte) string {
	object := map[string]any{}
	_ = sigsyaml.Unmarshal(document, &object) // A document that cannot be read has no labels.
	if err := objects.NotText(object); err != nil {
		return ". " + err.Error()
	}
	return ""
}

// source is the comment that Helm puts above the text of a template.
var source = regexp.MustCompile(`(?m)^# Source: (.+)$`)

// describe names the object of a document, and its template where that is known, for people.
func describe(document []byte) string {
	object := struct {
		Kind     string
		Metadata struct{ Name string }
	}{}
	_ = sigsyaml.Unmarshal(document, &object) // An object that cannot be read has no name.
	name := strings.TrimSpace(object.Kind + " " + object.Metadata.Name)
	if name == "" {
		name = "an object"
	}
	if from := source.FindSubmatch(document); from != nil {
		return fmt.Sprintf("%s of %s", name, from[1])
	}
	return name
}
