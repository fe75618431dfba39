package once

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/watches"
)

// readFile returns the one object of the file whose kind is watched.
func readFile(o Options, list []watches.Watch) (*unstructured.Unstructured, error) {
	content, err := contentOf(o)
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	var others []string
	documents := kubeyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for number := 1; ; number++ {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.File, err)
		}
		object := &unstructured.Unstructured{}
		asJSON, err := yaml.YAMLToJSONStrict(text)
		if err == nil {
			err = json.Unmarshal(asJSON, &object.Object) // With numbers as an API server's answer has them.
		}
		if err != nil {
			return nil, fmt.Errorf("%s: document %d (line 1 of which is line %d of the file): %w", o.File, number, lineOf(content, text), err)
		}
		switch gvk := object.GroupVersionKind(); {
		case len(object.Object) == 0:
		case slices.ContainsFunc(list, func(w watches.Watch) bool { return w.GVK == gvk }):
			found = append(found, object)
		default:
			others = append(others, fmt.Sprintf("%s %q", gvk.GroupVersion(), gvk.Kind))
		}
	}
	return theOne(o.File, found, others, list)
}

func contentOf(o Options) ([]byte, error) {
	if o.File == "-" {
		return o.Input, nil
	}
	return os.ReadFile(o.File)
}

// lineOf returns the line of the file on which the text begins.
func lineOf(content, text []byte) int {
	before, _, _ := bytes.Cut(content, bytes.TrimSpace(text))
	return bytes.Count(before, []byte("\n")) + 1
}

func theOne(file string, found []*unstructured.Unstructured, others []string, list []watches.Watch) (*unstructured.Unstructured, error) {
	var names, kinds []string
	for _, object := range found {
		names = append(names, object.GetKind()+"/"+object.GetName())
	}
	for _, watch := range list {
		kinds = append(kinds, fmt.Sprintf("%s %q", watch.GVK.GroupVersion(), watch.GVK.Kind))
	}
	switch {
	case len(found) > 1:
		return nil, fmt.Errorf("%s has %d objects of watched kinds, and a run is for one: %s", file, len(found), strings.Join(names, ", "))
	case len(found) == 0 && len(others) == 0:
		return nil, fmt.Errorf("%s has no object", file)
	case len(found) == 0:
		return nil, fmt.Errorf("%s has no object of a watched kind: it has %s, watches.yaml %s", file, strings.Join(others, ", "), strings.Join(kinds, ", "))
	case found[0].GetName() == "":
		return nil, fmt.Errorf("%s: the %s has no metadata.name", file, found[0].GetKind())
	}
	return found[0], nil
}
