package schema

import (
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

func node(t *testing.T, text string) *yaml.Node {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	return document.Content[0]
}

func TestRestricted(t *testing.T) {
	for schema, want := range map[string]bool{
		"{type: integer}":                         true,
		"{type: boolean}":                         true,
		"{type: string}":                          false,
		"{type: object}":                          false,
		"{}":                                      false,
		"{type: string, enum: [a, b]}":            true,
		"{type: string, format: uuid}":            true,
		"{type: string, format: uri}":             false,
		"{type: string, pattern: '^[a-z0-9-]+$'}": true,
		"{type: string, pattern: '^[a-z0-9.]+$'}": true,  // A dot in a class is a dot.
		"{type: string, pattern: '[a-z]+'}":       false, // It matches a part.
		"{type: string, pattern: '^[a-z]+'}":      false,
		"{type: string, pattern: '^a|b$'}":        false,
		"{type: string, pattern: '^.*$'}":         false,
		"{type: string, pattern: '^.{3}$'}":       false,
		"{type: string, pattern: '^(a.)?$'}":      false,
		"{type: string, pattern: '^[^x]+$'}":      false,
		"{type: string, pattern: '^[a-z$'}":       false, // Nobody knows what it means.
	} {
		if got := Restricted(node(t, schema)); got != want {
			t.Errorf("%s: want %v", schema, want)
		}
	}
	if Restricted(nil) {
		t.Error("no schema restricts nothing")
	}
}

func TestFind(t *testing.T) {
	const text = `{type: object, properties: {
		firstName: {type: string}, users: {type: array, items: {type: object, properties: {name: {type: string}}}},
		free: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`
	for path, want := range map[string]struct {
		kind        string
		found, open bool
	}{
		"first_name":      {"string", true, false},
		"firstName":       {"", false, false}, // It is looked for by the name of its variable.
		"users":           {"array", true, false},
		"users.[].name":   {"string", true, false},
		"users.[].number": {"", false, false},
		"free":            {"object", true, true},
		"free.any":        {"", false, true},
		"none":            {"", false, false},
	} {
		at, found, open := Find(node(t, text), strings.Split(path, "."), Snake)
		if Type(at) != want.kind || found != want.found || open != want.open {
			t.Errorf("%s: want %+v, got %q %v %v", path, want, Type(at), found, open)
		}
	}
}
