package watches

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// validator is an independent validator with the schema.
func validator(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("watches.schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("watches.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func validate(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(value)
}

// object is a part of the schema.
type object = map[string]any

func parts(t *testing.T) object {
	t.Helper()
	var schema object
	if err := yaml.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	return schema["definitions"].(object)["watch"].(object)
}

func names(t *testing.T, part any) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(part.(object)["properties"].(object)))
}

func TestTheSchemaHasTheFieldsThatTheManagerReads(t *testing.T) {
	p, watch := &parser{}, parts(t)
	d := &rawWatch{}
	kinds := p.contentFields(d)
	fields := slices.Sorted(maps.Keys(p.watchFields(d, kinds)))
	if diff := cmp.Diff(fields, names(t, watch)); diff != "" {
		t.Errorf("the fields of a watch (-manager +schema):\n%s", diff)
	}
	chart, ansible := kinds[0], kinds[1]
	for branch, unfit := range map[string]contentFields{"then": ansible, "else": chart} {
		want := slices.DeleteFunc(slices.Sorted(maps.Keys(unfit.parsers)), func(field string) bool { return slices.Contains(unfit.chooses, field) })
		if diff := cmp.Diff(want, names(t, watch[branch])); diff != "" {
			t.Errorf("the fields that do not fit, in %s (-manager +schema):\n%s", branch, diff)
		}
	}
	properties := watch["properties"].(object)
	items := func(part any) any { return part.(object)["items"] }
	for what, nested := range map[string]struct {
		entry string
		part  any
	}{
		"a finalizer":                 {"finalizer: {nothingLikeThis: 1}", properties["finalizer"]},
		"a label selector":            {"selector: {nothingLikeThis: 1}", properties["selector"]},
		"an expression of a selector": {"selector: {matchExpressions: [{nothingLikeThis: 1}]}", items(properties["selector"].(object)["properties"].(object)["matchExpressions"])},
		"a reference":                 {"references: [{nothingLikeThis: 1}]", items(properties["references"])},
		"an element of blacklist":     {"blacklist: [{nothingLikeThis: 1}]", items(properties["blacklist"])},
		"an element of driftIgnore":   {"driftIgnore: [{nothingLikeThis: 1}]", items(properties["driftIgnore"])},
		"job":                         {"job: {nothingLikeThis: 1}", properties["job"]},
		"an element of valuesFrom":    {"valuesFrom: [{nothingLikeThis: 1}]", items(properties["valuesFrom"])},
	} {
		if diff := cmp.Diff(fieldsOf(t, nested.entry), names(t, nested.part)); diff != "" {
			t.Errorf("the fields of %s (-manager +schema):\n%s", what, diff)
		}
	}
}

var known = regexp.MustCompile(`"nothingLikeThis" is not a field of [a-zA-Z ]+; it has ([a-zA-Z, ]+)`)

// fieldsOf returns the fields that the manager names when it finds an unknown one.
func fieldsOf(t *testing.T, entry string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "watches.yaml")
	if err := os.WriteFile(path, []byte("- "+entry+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(path, Search{Dir: filepath.Dir(path)})
	match := known.FindStringSubmatch(fmt.Sprint(err))
	if match == nil {
		t.Fatalf("%s: no fault names the fields: %v", entry, err)
	}
	return strings.Split(match[1], ", ")
}

// TestEachPropertyIsDescribed: an editor shows the descriptions.
func TestEachPropertyIsDescribed(t *testing.T) {
	var look func(at string, part any)
	look = func(at string, part any) {
		switch part := part.(type) {
		case object:
			if properties, ok := part["properties"].(object); ok {
				for name, property := range properties {
					if property, ok := property.(object); ok && property["description"] == nil {
						t.Errorf("%s.%s has no description", at, name)
					}
				}
			}
			for name, member := range part {
				look(at+"."+name, member)
			}
		case []any:
			for _, element := range part {
				look(at, element)
			}
		}
	}
	look("watch", parts(t))
}

func TestTheSchemaTakesEachWatchesFileOfTheRepository(t *testing.T) {
	schema, found := validator(t), 0
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (strings.HasPrefix(name, ".") && name != ".." || name == "bin") {
			return fs.SkipDir
		}
		if entry.Name() != "watches.yaml" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found++
		if err := validate(t, schema, string(text)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return nil
	})
	if err != nil || found < 10 {
		t.Errorf("only %d files, %v", found, err)
	}
}

func TestWhatTheSchemaTakesAndRefuses(t *testing.T) {
	schema := validator(t)
	const kind = "version: v1\n  kind: K\n  "
	dir := t.TempDir()
	for _, role := range []string{"roles/r/tasks/main.yml", "p.yml", "charts/c/Chart.yaml"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(role)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, role), []byte("[]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for entry, good := range map[string]bool{
		kind + "role: r":                                                                         true,
		kind + "playbook: p.yml":                                                                 true,
		kind + "chart: charts/c":                                                                 true,
		kind + "role: r\n  playbook: p.yml":                                                      false,
		kind + "role: r\n  chart: charts/c":                                                      false,
		kind + "vars: {}":                                                                        false, // Neither a role nor a playbook nor a chart.
		"version: v1\n  role: r":                                                                 false,
		"kind: K\n  role: r":                                                                     false,
		"version: apps/v1\n  kind: K\n  role: r":                                                 false,
		"version: v1\n  kind: My_Kind\n  role: r":                                                false,
		"group: Upper.Example\n  version: v1\n  kind: K\n  role: r":                              false,
		kind + "role: r\n  rolle: x":                                                             false,
		kind + "role: r\n  reconcilePeriod: 10":                                                  false,
		kind + "role: r\n  reconcilePeriod: 10 minutes":                                          false,
		kind + "role: r\n  reconcilePeriod: -1s":                                                 false,
		kind + "role: r\n  reconcilePeriod: 1h30m":                                               true,
		kind + "role: r\n  reconcilePeriod: 1.5h\n  timeout: 0s":                                 true,
		kind + "role: r\n  timeout: ${TIMEOUT:-10m}":                                             true,
		kind + "role: r\n  maxRunnerArtifacts: ${KEPT:-3}":                                       true,
		kind + "role: r\n  maxRunnerArtifacts: -1":                                               false,
		kind + "role: r\n  verbosity: 8":                                                         false,
		kind + "role: r\n  verbosity: 7":                                                         true,
		kind + "role: r\n  warm: \"no\"":                                                         false,
		kind + "role: r\n  maxConcurrentReconciles: 0":                                           false,
		kind + "role: r\n  finalizer: {role: r}":                                                 false,
		kind + "role: r\n  finalizer: {name: a.example/f}":                                       true,
		kind + "role: r\n  finalizer: {name: a.example/f, playbook: p.yml, role: r}":             false,
		kind + "role: r\n  wait: true":                                                           false,
		kind + "chart: charts/c\n  markUnsafe: false":                                            false,
		kind + "chart: charts/c\n  wait: true\n  drift: warn\n  crds: skip":                      true,
		kind + "chart: charts/c\n  drift: never":                                                 false,
		kind + "chart: charts/c\n  driftIgnore: [{kind: Deployment, pointers: [spec]}]":          false,
		kind + "chart: charts/c\n  driftIgnore: [{kind: Deployment, pointers: [/spec]}]":         true,
		kind + "chart: charts/c\n  templatesInSpec: [spec.config]":                               true,
		kind + "chart: charts/c\n  apply: client":                                                true,
		kind + "chart: charts/c\n  apply: me":                                                    false,
		kind + "chart: charts/c\n  templatesInSpec: spec":                                        false,
		kind + "chart: charts/c\n  overrideValues: {image.tag: 3}":                               true,
		kind + "chart: charts/c\n  releaseName: spec.release\n  releaseNamespace: metadata.name": true,
		kind + "chart: charts/c\n  releaseName: a.b-c\n  releaseNamespace: team-a":               true,
		kind + "chart: charts/c\n  releaseName: ${RELEASE:-hello}":                               true,
		kind + "chart: charts/c\n  releaseName: spec.list[*].name":                               false,
		kind + "chart: charts/c\n  releaseName: " + strings.Repeat("a", 54):                      false,
		kind + "chart: charts/c\n  releaseNamespace: a.b":                                        false,
		kind + "chart: charts/c\n  releaseNamespace: Team":                                       false,
		kind + "chart: charts/c\n  valuesFrom: [{kind: Secret, name: spec.secret}]":              true,
		kind + "chart: charts/c\n  valuesFrom: [{kind: ConfigMap, name: sizes, key: a, targetPath: a.b, optional: true}]": true,
		kind + "chart: charts/c\n  valuesFrom: [{kind: Pod, name: a}]":                                                    false,
		kind + "chart: charts/c\n  valuesFrom: [{kind: Secret}]":                                                          false,
		kind + "chart: charts/c\n  valuesFrom: [{kind: Secret, name: \"spec.list[*].name\"}]":                             false,
		kind + "chart: charts/c\n  valuesFrom: [{kind: Secret, name: a, namespace: b}]":                                   false,
		kind + "chart: charts/c\n  valuesFromInSpec: spec.valuesFrom":                                                     true,
		kind + "chart: charts/c\n  valuesFromInSpec: spec":                                                                false,
		kind + "chart: charts/c\n  valuesFromInSpec: true":                                                                false,
		kind + "role: r\n  valuesFrom: [{kind: Secret, name: a}]":                                                         false,
		kind + "role: r\n  releaseName: hello":                                                                            false,
		kind + "role: r\n  references: [{version: v1, kind: Secret, name: \"spec.users[*].secret\"}]":                     true,
		kind + "role: r\n  references: [{version: v1, kind: Secret, name: \"spec.users[0].secret\"}]":                     false,
		kind + "role: r\n  references: [{version: v1, kind: Secret}]":                                                     false,
		kind + "role: r\n  references: {version: v1}":                                                                     false,
		kind + "role: r\n  references:":                                                                                   true,
		kind + "role: r\n  blacklist: [{kind: Pod}]":                                                                      true,
		kind + "role: r\n  blacklist: [Pod]":                                                                              false,
		kind + "role: r\n  selector: {matchExpressions: [{key: a, operator: Is}]}":                                        false,
		kind + "role: r\n  selector: {matchLabels: {a: b}}":                                                               true,
		kind + "role: r\n  selector: {matchLabels: {a: 1}}":                                                               false,
		kind + "role: r\n  vars: [a]":                                                                                     false,
		kind + "role: 3":                                                                                                  false,
	} {
		text := "- " + entry + "\n"
		if err := validate(t, schema, text); (err == nil) != good {
			t.Errorf("%q: want it good: %v, got %v", text, good, err)
		}
		path := filepath.Join(dir, "watches.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		unset := func(string) (string, bool) { return "", false }
		if _, err := Load(path, Search{Dir: dir, LookupEnv: unset}); (err == nil) != good {
			t.Errorf("%q: the manager disagrees with this test: want it good: %v, got %v", text, good, err)
		}
	}
}
