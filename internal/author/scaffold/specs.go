package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	crds "github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// option is an option of a role's argument specs.
type option struct {
	name    string // in the role
	key     string // in the spec of a CR
	kind    string
	element string // of a list
	// description is plain text.
	description string
	required    bool
	fallback    *yaml.Node // the default; nil for none
	choices     []*yaml.Node
	options     []option
	secret      bool
}

// describe sets the fields that follow from the argument specs of the role.
func (k *Kind) describe(plan *Plan) error {
	path := "roles/" + k.Singular + "/meta/argument_specs.yml"
	var content []byte
	var err error
	switch {
	case (k.GenerateRole || k.GeneratePlaybook) && !k.DefinitionOnly:
		content, err = renderFile("templates/kind/roles/ROLE/meta/argument_specs.yml.tmpl", k)
	case k.Role != "":
		path, content, err = readSpecs(plan.dir, k.Role)
	}
	if err != nil {
		return err
	}
	documents, fault := source.Parse(path, content)
	if fault != nil {
		return fmt.Errorf("%s:%d: %s", path, fault.Line, fault.Message)
	}
	var node *yaml.Node
	if len(documents) > 0 {
		node = source.Field(documents[0], "argument_specs", "main", "options")
	}
	if node == nil && k.DefinitionOnly {
		return k.undescribed()
	}
	if node == nil {
		plan.Notes = append(plan.Notes, fmt.Sprintf("the spec of %s takes anything: describe it in config/crd/bases, or, for a role, in meta/argument_specs.yml and give --crd-only", k.Kind))
		k.SpecSchema = "type: object\nx-kubernetes-preserve-unknown-fields: true"
		return nil
	}
	r := specReader{path: path, prefix: k.Singular + "_", plan: plan}
	options := r.options(node, true)
	if len(r.errs) > 0 {
		return errors.Join(r.errs...)
	}
	var w schemaWriter
	w.object(options, "")
	for _, o := range options {
		k.SpecRequired = k.SpecRequired || o.required
	}
	if !k.SpecRequired {
		w.line("default: {}") // Else an object without a spec would get no defaults.
	}
	k.SpecSchema = w.text.String()
	k.SampleSpec, k.SampleVars = samples(options, k.Role == "")
	k.options = options
	return nil
}

// undescribed returns the error for a definition that is to be written again, and of which nothing
// tells the spec: the schema in it would be lost.
func (k *Kind) undescribed() error {
	definition := fmt.Sprintf("config/crd/bases/%s_%s.yaml", k.APIGroup, k.Plural)
	if k.Role == "" {
		return fmt.Errorf("--crd-only: a playbook does not describe the spec of %s: edit the schema in %s, or give --crd-from-values FILE", k.Kind, definition)
	}
	return fmt.Errorf("--crd-only: the role %s does not describe the spec of %s: write roles/%s/meta/argument_specs.yml, edit the schema in %s, or give --crd-from-values FILE", k.Role, k.Kind, k.Role, definition)
}

func readSpecs(dir, role string) (path string, content []byte, err error) {
	for _, name := range []string{"argument_specs.yml", "argument_specs.yaml", "main.yml"} {
		path = "roles/" + role + "/meta/" + name
		content, err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
		if !errors.Is(err, fs.ErrNotExist) {
			return path, content, err
		}
	}
	return path, nil, nil
}

// specReader reads options, and collects all faults.
type specReader struct {
	path   string
	prefix string // of options that are not in the spec
	plan   *Plan
	errs   []error
}

func (r *specReader) fault(node *yaml.Node, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s:%d: %s", r.path, node.Line, fmt.Sprintf(format, args...)))
}

func (r *specReader) options(node *yaml.Node, top bool) []option {
	if node.Kind != yaml.MappingNode {
		r.fault(node, "options: a mapping of names is needed")
		return nil
	}
	var options []option
	for name, value := range source.Pairs(node) {
		if top && (name.Value == "ansible_operator_meta" || strings.HasPrefix(name.Value, r.prefix)) {
			continue // The operator's variables, and its own settings.
		}
		key, ok := keyOf(name.Value)
		if !ok {
			r.fault(name, "no key of a custom resource becomes the variable %q: begin it with a letter, and write lower case letters, digits and single underscores", name.Value)
			continue
		}
		if top && crds.Reserved(name.Value) {
			r.plan.Notes = append(r.plan.Notes, fmt.Sprintf("%s:%d: Ansible or Python reserves the name %s, so that ansible-lint, and with it make test, refuses it as a variable of the role: choose another, such as %s",
				r.path, name.Line, name.Value, "service_"+name.Value))
		}
		options = append(options, r.option(name.Value, key, value))
	}
	return options
}

// keyOf returns the key of a spec that becomes the variable: in camelCase if the rules of
// snake case lead back, else the name itself.
func keyOf(name string) (string, bool) {
	words := strings.Split(name, "_")
	for i := 1; i < len(words); i++ {
		if words[i] != "" {
			words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
		}
	}
	for _, key := range []string{strings.Join(words, ""), name} {
		if back, err := extravars.SnakeCase(key); err == nil && back == name {
			return key, true
		}
	}
	return "", false
}

func (r *specReader) option(name, key string, node *yaml.Node) option {
	get := func(key string) *yaml.Node {
		if value := source.Field(node, key); value != nil {
			return value
		}
		return &yaml.Node{Tag: "!!null"}
	}
	o := option{
		name: name, key: key, kind: cmp.Or(get("type").Value, "str"), element: get("elements").Value, description: plain(get("description")),
		required: isTrue(get("required")), secret: isTrue(get("no_log")), choices: get("choices").Content,
	}
	if fallback := get("default"); fallback.Tag != "!!null" {
		o.fallback = fallback
	}
	if inner := source.Field(node, "options"); inner != nil {
		o.options = r.options(inner, false)
	}
	if types[o.kind] == "" {
		r.fault(node, "option %s: type %q is not known to Ansible", name, o.kind)
	}
	if o.element != "" && types[o.element] == "" {
		r.fault(node, "option %s: elements %q is not known to Ansible", name, o.element)
	}
	r.checkDefault(&o)
	if o.secret {
		r.plan.Notes = append(r.plan.Notes, fmt.Sprintf("option %s is no_log, but who may read the custom resource reads its spec: name a Secret there instead", name))
	}
	return o
}

// checkDefault reports a default that the schema would refuse.
func (r *specReader) checkDefault(o *option) {
	if o.fallback == nil {
		return
	}
	tags := map[string]string{"str": "!!str", "path": "!!str", "int": "!!int", "bool": "!!bool", "list": "!!seq", "dict": "!!map"}
	want, tag := tags[o.kind], o.fallback.Tag
	if strings.Contains(o.fallback.Value, "{{") {
		r.plan.Notes = append(r.plan.Notes, fmt.Sprintf("option %s: its default is a template, which a CRD cannot have; the role's defaults still apply", o.name))
		o.fallback = nil
		return
	}
	if want != "" && tag != want {
		r.fault(o.fallback, "option %s: the default is not of type %s", o.name, o.kind)
	}
}

func isTrue(node *yaml.Node) bool {
	switch strings.ToLower(node.Value) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}

// markup is Ansible's: C(code), V(value), O(option), B(bold) and the like.
var markup = regexp.MustCompile(`\b[A-Z]\(([^()]*)\)`)

// plain returns a description, which may be a list of paragraphs, in one line without markup.
func plain(node *yaml.Node) string {
	words := strings.Fields(node.Value)
	for _, paragraph := range node.Content {
		words = append(words, strings.Fields(paragraph.Value)...)
	}
	return markup.ReplaceAllString(strings.Join(words, " "), "`$1`")
}
