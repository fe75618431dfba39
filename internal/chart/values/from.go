package values

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"unicode/utf8"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/ensign-operator/ensign/internal/boundedyaml"
	"github.com/ensign-operator/ensign/internal/watches"
)

// From is the part of a release's values that comes from one object.
type From struct {
	watches.ValuesSource

	Data []byte
}

const (
	// maxFrom bounds the values of a release from all objects together, in bytes. Helm stores the
	// values of a release in a Secret, which has less room than that.
	maxFrom = 2 << 20
	// maxEntries bounds the lines and the entries of maps and lists that are parsed.
	maxEntries = 100_000
)

// Check returns an error if the objects have more for a release than is parsed. It parses nothing.
func Check(objects []From) error {
	size, entries := 0, 0
	for _, o := range objects {
		size += len(o.Data)
		if o.TargetPath == nil {
			entries += boundedyaml.Entries(o.Data)
		}
	}
	switch {
	case size > maxFrom:
		return fmt.Errorf("the objects of valuesFrom have more than %d MiB together", maxFrom>>20)
	case entries > maxEntries:
		return fmt.Errorf("the objects of valuesFrom have more than %d lines, commas and brackets together; give a long text a targetPath", maxEntries)
	}
	return nil
}

// Merge merges the values of the objects into a tree, the weakest first. No error shows the content
// of an object.
func Merge(objects []From) (map[string]any, error) {
	if err := Check(objects); err != nil {
		return nil, err
	}
	merged := map[string]any{}
	for _, o := range objects {
		if err := o.mergeInto(merged); err != nil {
			return nil, fmt.Errorf("%s: %w", o, err)
		}
	}
	return merged, nil
}

func (f From) mergeInto(merged map[string]any) error {
	if !utf8.Valid(f.Data) || bytes.IndexByte(f.Data, 0) >= 0 {
		return errors.New("it is not text in UTF-8")
	}
	if f.TargetPath != nil {
		return setAt(merged, f.TargetPath, string(f.Data))
	}
	tree, err := parseValues(f.Data)
	if err != nil {
		return err
	}
	maps.Copy(merged, loader.MergeMaps(merged, tree))
	return nil
}

// yamlLine matches where a YAML parser met an error. The rest of its words may quote the text.
var yamlLine = regexp.MustCompile(`\bline \d+`)

// parseValues parses a YAML mapping of values. Empty text is an empty one.
func parseValues(text []byte) (map[string]any, error) {
	const advice = "give a mapping of values, or a targetPath for the text as it is"
	document, err := boundedyaml.ToJSON(text)
	if err != nil {
		if at := yamlLine.FindString(err.Error()); at != "" {
			return nil, fmt.Errorf("it is not a YAML mapping, at %s; %s", at, advice)
		}
		return nil, fmt.Errorf("it is not a YAML mapping, or has too many aliases; %s", advice)
	}
	var value any
	if err := utiljson.Unmarshal(document, &value); err != nil {
		return nil, fmt.Errorf("it is not a YAML mapping; %s", advice)
	}
	tree, ok := value.(map[string]any)
	if !ok && value != nil {
		return nil, fmt.Errorf("it is not a YAML mapping; %s", advice)
	}
	return tree, nil
}

// setAt sets the value at a path. It returns an error if a parent is not a mapping.
func setAt(values map[string]any, path []string, value string) error {
	for i, name := range path[:len(path)-1] {
		next, there := values[name]
		if !there || next == nil {
			next = map[string]any{}
			values[name] = next
		}
		inner, ok := next.(map[string]any)
		if !ok {
			return fmt.Errorf("targetPath %q: an earlier object set %q to a value that is not a mapping", shownPath(path), shownPath(path[:i+1]))
		}
		values = inner
	}
	values[path[len(path)-1]] = value
	return nil
}

// shownPath returns a path for people.
func shownPath(path []string) string {
	names := make([]string, len(path))
	for i, name := range path {
		names[i] = strings.ReplaceAll(name, ".", `\.`)
	}
	return strings.Join(names, ".")
}

// Shown returns the part of the data that a text may repeat: the values, or the text itself if it is not
// a mapping of values. Check must have passed.
func (f From) Shown() any {
	if tree, err := parseValues(f.Data); err == nil && f.TargetPath == nil {
		return tree
	}
	return string(f.Data)
}
