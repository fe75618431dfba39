package controller

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/spec3"

	"github.com/ensign-operator/ensign/internal/watches"
)

// gadgetSchema is as an API server publishes it for a custom resource.
const gadgetSchema = `{"components": {"schemas": {
	"io.g.v1.GadgetList": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "g.io", "version": "v1", "kind": "GadgetList"}]},
	"io.g.v1.Gadget": {
		"type": "object",
		"x-kubernetes-group-version-kind": [{"group": "g.io", "version": "v1", "kind": "Gadget"}],
		"properties": {
			"apiVersion": {"type": "string"}, "kind": {"type": "string"},
			"metadata": {"default": {}, "allOf": [{"$ref": "#/components/schemas/meta"}]},
			"spec": {"type": "object", "properties": {
				"secret": {"type": "string"},
				"users": {"type": "array", "items": {"type": "object", "properties": {"secret": {"type": "string"}}}},
				"labels": {"type": "object", "additionalProperties": {"type": "string"}},
				"open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"closed": {"type": "object", "properties": {"a": {"type": "string"}}}}},
				"either": {"x-kubernetes-int-or-string": true},
				"bare": {"type": "object"},
				"anything": {}
			}}
		}
	},
	"meta": {"type": "object", "properties": {"name": {"type": "string"}, "annotations": {"type": "object", "additionalProperties": {"type": "string"}}}}
}}}`

func TestPathsThatLeadNowhere(t *testing.T) {
	var document spec3.OpenAPI
	if err := json.Unmarshal([]byte(gadgetSchema), &document); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		path watches.Path
		want string
	}{
		"none is given":                 {nil, ""},
		"a field":                       {watches.Path{"spec", "secret"}, ""},
		"no such field":                 {watches.Path{"spec", "secrte"}, "spec.secrte"},
		"not even the first one":        {watches.Path{"spek", "secret"}, "spek"},
		"no status":                     {watches.Path{"status", "secret"}, "status"},
		"into a text":                   {watches.Path{"spec", "secret", "name"}, "spec.secret.name"},
		"elements of a list":            {watches.Path{"spec", "users", watches.EachElement, "secret"}, ""},
		"a list without its elements":   {watches.Path{"spec", "users", "secret"}, "spec.users.secret"},
		"no such field of elements":     {watches.Path{"spec", "users", watches.EachElement, "name"}, "spec.users[*].name"},
		"elements of what is no list":   {watches.Path{"spec", "secret", watches.EachElement}, "spec.secret[*]"},
		"any key":                       {watches.Path{"spec", "labels", "x"}, ""},
		"into a key's text":             {watches.Path{"spec", "labels", "x", "y"}, "spec.labels.x.y"},
		"unknown fields are kept":       {watches.Path{"spec", "open", "x", "y"}, ""},
		"in an open field a closed one": {watches.Path{"spec", "open", "closed", "b"}, "spec.open.closed.b"},
		"of which nothing is known":     {watches.Path{"spec", "anything", watches.EachElement, "x"}, ""},
		"a number or a text":            {watches.Path{"spec", "either"}, ""},
		"an object with unknown fields": {watches.Path{"spec", "bare", "x"}, ""},
		"metadata, which is elsewhere":  {watches.Path{"metadata", "annotations", "x"}, ""},
		"not in metadata":               {watches.Path{"metadata", "title"}, "metadata.title"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unknownField(&document, schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: "Gadget"}, test.path); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if got := unknownField(&document, schema.GroupVersionKind{Group: "g.io", Version: "v2", Kind: "Gadget"}, test.path); got != "" {
				t.Errorf("got %q for a kind without a schema", got)
			}
			if got := unknownField(&spec3.OpenAPI{}, schema.GroupVersionKind{}, test.path); got != "" {
				t.Errorf("got %q without schemas", got)
			}
		})
	}
}

func TestPathsAreCheckedOnceTheSchemaIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		var lines []string
		s := &Supervisor{
			GVK: schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: "Gadget"},
			OpenAPI: func(schema.GroupVersion) (*spec3.OpenAPI, error) {
				document := &spec3.OpenAPI{}
				switch asked++; asked {
				case 1:
					return nil, errors.New("not found")
				case 2:
					return document, nil
				default:
					return document, json.Unmarshal([]byte(gadgetSchema), document)
				}
			},
			Logger: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}),
		}
		s.warnOfPaths(t.Context(), []watches.Reference{{Name: watches.Path{"spec", "secret"}, Namespace: watches.Path{"spec", "home"}}})
		if len(lines) != 1 || !strings.Contains(lines[0], "WARNING") || !strings.Contains(lines[0], `"path"="spec.home"`) {
			t.Errorf("want one warning, got %q", lines)
		}
	})
}
