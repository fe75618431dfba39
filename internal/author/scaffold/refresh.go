package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	crds "github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// refresh plans a new definition of a kind of the project, and the resulting changes of the sample,
// the role's defaults and Molecule's play. New fields are added. Changes that a person has
// to check are noted with their lines.
func (k *Kind) refresh(plan *Plan, paths *strings.Replacer) error {
	definition := paths.Replace("config/crd/bases/APIGROUP_PLURAL.yaml")
	text, err := os.ReadFile(filepath.Join(plan.dir, filepath.FromSlash(definition)))
	if errors.Is(err, fs.ErrNotExist) {
		content, err := renderFile("templates/kind/config/crd/bases/APIGROUP_PLURAL.yaml.tmpl", k)
		plan.create(definition, content)
		return err
	}
	if err != nil {
		return fmt.Errorf("read the CRD: %w", err)
	}
	old, err := specIn(text, k.Version)
	if err != nil {
		return fmt.Errorf("%s:%w", definition, err)
	}
	if err := k.carryOver(definition, old.spec, plan); err != nil {
		return err
	}
	changed, err := old.replaced(text, k)
	if err != nil {
		return fmt.Errorf("%s:%w", definition, err)
	}
	plan.replace(definition, text, changed)
	f := follower{Kind: k, plan: plan, before: propertiesOf(old.spec)}
	if documents, _ := source.Parse(definition, changed); len(documents) > 0 {
		crd, _ := crds.Parse(definition, documents[0])
		if f.validator, err = crd.Validator(k.Version); err != nil {
			f.note(definition, 1, "the sample was not compared with the schema: %v", err)
		}
	}
	f.sample(paths.Replace("config/samples/GROUP_VERSION_SINGULAR.yaml"))
	if k.Role != "" && k.ValuesFile == "" {
		f.defaults("roles/" + k.Role + "/defaults/main.yml")
		f.converge("molecule/default/converge.yml")
	}
	return nil
}

// replace plans the new content of a file that exists, if it differs.
func (p *Plan) replace(path string, before, after []byte) {
	if string(before) != string(after) {
		p.files = append(p.files, file{path: path, content: after, edits: true})
	}
}

// definition is where the schema of a version stands in a definition.
type definition struct {
	schema    *yaml.Node // of the whole object
	key, spec *yaml.Node // the property spec
}

// specIn finds the schema of a version in the text of a definition.
func specIn(text []byte, version string) (d definition, err error) {
	const remedy = "restore it, or move the file away and repeat the command, which then writes it again"
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return d, fmt.Errorf(" %w: %s", err, remedy)
	}
	if len(document.Content) == 0 {
		return d, errors.New("1: the file is empty: " + remedy)
	}
	var above, properties *yaml.Node
	for _, one := range source.Items(source.Field(document.Content[0], "spec", "versions")) {
		if source.Scalar(one, "name") == version {
			_, above = source.Entry(one, "schema")
			_, d.schema = source.Entry(above, "openAPIV3Schema")
		}
	}
	_, properties = source.Entry(d.schema, "properties")
	d.key, d.spec = source.Entry(properties, "spec")
	isAlias := func(n *yaml.Node) bool { return n.Kind == yaml.AliasNode } // An edit would change another version, too.
	if d.spec == nil || slices.ContainsFunc([]*yaml.Node{above, d.schema, properties}, isAlias) {
		return d, fmt.Errorf("%d: the version %s has no schema of a spec: %s", document.Content[0].Line, version, remedy)
	}
	return d, nil
}

// replaced returns the text of a definition with another schema of the spec. All other lines stay.
func (d definition) replaced(text []byte, k *Kind) ([]byte, error) {
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	indented := strings.Split(indent(d.key.Column+1, k.SpecSchema), "\n")
	last := source.LastLine(lines, max(d.key.Line, deepest(d.spec)), len(lines), d.key.Column)
	lines = slices.Replace(lines, d.key.Line-1, last, append([]string{strings.Repeat(" ", d.key.Column-1) + "spec:"}, indented...)...)
	// The fields that the object as a whole requires stand above.
	key, required := source.Entry(d.schema, "required")
	properties, _ := source.Entry(d.schema, "properties")
	switch {
	case k.SpecRequired && required == nil && properties.Line <= d.key.Line:
		lines = slices.Insert(lines, properties.Line-1, strings.Repeat(" ", properties.Column-1)+"required: [spec]")
	case !k.SpecRequired && required != nil && len(required.Content) == 1 && required.Content[0].Value == "spec" && key.Line < d.key.Line:
		lines = slices.Delete(lines, key.Line-1, deepest(required))
	case k.SpecRequired && required != nil && !slices.ContainsFunc(required.Content, func(n *yaml.Node) bool { return n.Value == "spec" }):
		return nil, fmt.Errorf("%d: add spec to what is required, then repeat the command", required.Line)
	}
	result := []byte(strings.Join(lines, "\n") + "\n")
	if _, err := specIn(result, k.Version); err != nil {
		return nil, fmt.Errorf("%d: the schema is written in a way that this program cannot change: move the file away and repeat the command, which then writes it again", d.key.Line)
	}
	return result, nil
}

// generated are the keywords that this package writes into a schema. description is one of them,
// but one that a person has added where the source has none stays.
var generated = strings.Fields("type required properties items enum default additionalProperties nullable " + anything) //nolint:gochecknoglobals // A constant.

// carryOver adds to the new schema a person's additions to the old one, such as a pattern or a
// rule: argument specs and values can't express them.
func (k *Kind) carryOver(path string, old *yaml.Node, plan *Plan) error {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(k.SpecSchema), &document); err != nil {
		return fmt.Errorf("read the schema: %w", err)
	}
	schema, written := document.Content[0], generated
	if k.Chart != "" {
		written = append(slices.Clone(generated), sameKeywords...)
	}
	kept := carry(old, schema, "spec", written)
	if len(kept) == 0 {
		return nil
	}
	plan.Notes = append(plan.Notes, fmt.Sprintf("%s: kept, because somebody added it there: %s", path, strings.Join(kept, ", ")))
	text, err := yamlText(schema)
	k.SpecSchema = text
	return err
}

func carry(from, to *yaml.Node, path string, written []string) (kept []string) {
	if from.Kind != yaml.MappingNode || to.Kind != yaml.MappingNode || source.Scalar(from, "type") != source.Scalar(to, "type") {
		return nil
	}
	for key, value := range source.Pairs(from) {
		if !slices.Contains(written, key.Value) && source.Field(to, key.Value) == nil {
			to.Content = append(to.Content, key, value)
			kept = append(kept, path+": "+key.Value)
		}
	}
	if a, b := source.Field(from, "items"), source.Field(to, "items"); a != nil && b != nil {
		kept = append(kept, carry(a, b, path+"[]", written)...)
	}
	for name, property := range source.Pairs(source.Field(to, "properties")) {
		if before := source.Field(from, "properties", name.Value); before != nil {
			kept = append(kept, carry(before, property, path+"."+name.Value, written)...)
		}
	}
	return kept
}
