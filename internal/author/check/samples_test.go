package check

import (
	"strings"
	"testing"
)

const things = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  group: example.com
  names: {kind: Thing, plural: things}
  versions:
    - name: v1
      served: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [name]
              properties:
                name: {type: string, maxLength: 5}
                size: {type: integer, default: 1}
                mode: {type: string, enum: [fast, safe]}
                kept: {type: string, nullable: true, enum: [a, null]}
                free: {type: object, x-kubernetes-preserve-unknown-fields: true}
                users:
                  type: array
                  x-kubernetes-list-type: map
                  x-kubernetes-list-map-keys: [id]
                  items: {type: object, required: [id], properties: {id: {type: string}}}
              x-kubernetes-validations:
                - {rule: "self.size < 9 || self.mode == 'safe'", message: large things are safe}
`

func TestSamplesAreWhatTheAPIServerTakes(t *testing.T) {
	const head = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x}\nspec:\n"
	for name, test := range map[string]struct {
		sample string
		want   string // "LINE a part of the message"; "" for no finding
	}{
		"one that is taken":              {head + "  name: a\n  free: {any: {thing: 1}}\n", ""},
		"a field that is dropped":        {head + "  name: a\n  szie: 1\n", "6 the CRD has no field spec.szie; did you mean size?"},
		"one in an element":              {head + "  name: a\n  users:\n    - id: x\n      naem: y\n", "8 spec.users[0].naem"},
		"a field beside the spec":        {"extra: 1\n" + head + "  name: a\n", "1 no field extra"},
		"a value of another type":        {head + "  name: a\n  size: two\n", "6 integer"},
		"a value that is not allowed":    {head + "  name: a\n  mode: slow\n", "6 fast"},
		"a text that is too long":        {head + "  name: longer\n", "5 5"},
		"what is required is missing":    {head + "  size: 1\n", "4 spec.name: Required value"},
		"an element that is there twice": {head + "  name: a\n  users: [{id: x}, {id: x}]\n", "6 Duplicate"},
		"a rule that is broken":          {head + "  name: a\n  size: 10\n  mode: fast\n", "4 large things are safe"},
		"a rule that the default keeps":  {head + "  name: a\n  mode: fast\n", ""},
		"the second of a file":           {head + "  name: a\n---\n" + head + "  naem: a\n  name: b\n", "11 did you mean name?"},
		"another version":                {strings.Replace(head, "v1", "v2", 1) + "  name: a\n", "1 does not serve the version v2"},
		"a kind with a slip":             {strings.Replace(head, "Thing", "Thijng", 1) + "  name: a\n", "2 did you mean Thing?"},
		"what others define":             {"apiVersion: other.com/v1\nkind: Thing\n", ""},
		"what Kubernetes has":            {"apiVersion: v1\nkind: Secret\nspec: {a: b}\n", ""},
		"no YAML":                        {"a: [\n", "2 invalid YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			p := project(t, thing(), map[string]string{"config/crd.yaml": things, "config/samples/deep/one.yml": test.sample})
			p.customResources(t.Context())
			wantSample(t, p, "config/samples/deep/one.yml", test.want)
		})
	}
}

func TestAProjectInGoGeneratesItsCRDs(t *testing.T) {
	for name, test := range map[string]struct {
		files      map[string]string
		wantRemedy string
	}{
		"without a module": {map[string]string{}, "add its CRD"},
		"with one":         {map[string]string{"go.mod": "module example.com/thing\n"}, "make manifests"},
	} {
		t.Run(name, func(t *testing.T) {
			test.files["config/crd.yaml"] = things
			test.files["config/samples/one.yml"] = "apiVersion: example.com/v1\nkind: Menu\n"
			p := project(t, thing(), test.files)
			p.customResources(t.Context())
			want(t, p, "config/samples/one.yml:2 error sample")
			if !strings.Contains(p.findings[0].Remedy, test.wantRemedy) {
				t.Errorf("want %q, got %q", test.wantRemedy, p.findings[0].Remedy)
			}
		})
	}
}

// kubectl apply leaves null out of a new object, and the API server takes it; what sends null is refused, although
// the enum has it.
func TestANullThatTheEnumHas(t *testing.T) {
	p := project(t, thing(), map[string]string{
		"config/crd.yaml": things, "config/samples/one.yml": "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x}\nspec:\n  name: a\n  kept: null\n",
	})
	p.customResources(t.Context())
	want(t, p, "config/samples/one.yml:6 warning sample")
}

func TestWhatMoleculeAppliesIsCompared(t *testing.T) {
	const file = "molecule/default/converge.yml"
	play := func(task string) string { return "- hosts: localhost\n  tasks:\n    - kubernetes.core.k8s:\n" + task }
	object := func(spec string) string {
		return play("        definition:\n          apiVersion: example.com/v1\n          kind: Thing\n          metadata: {name: '{{ x }}'}\n          spec: " + spec + "\n")
	}
	for name, test := range map[string]struct{ converge, want string }{
		"one that is taken":               {object("{name: a}"), ""},
		"a field that is dropped":         {object("{name: a, naem: b}"), "8 did you mean name?"},
		"also where others are templates": {object("{name: '{{ a_long_name }}', naem: b}"), "8 did you mean name?"},
		"a template may be of any type":   {object("{name: a, size: '{{ size }}'}"), ""},
		"and fit any rule":                {object("{name: a, size: 10, mode: '{{ mode }}'}"), ""},
		"or be all there is":              {object("'{{ spec }}'"), ""},
		"in a list":                       {play("        definition: [{apiVersion: example.com/v1, kind: Thing, spec: {}}]\n"), "4 spec.name: Required value"},
		"one that is deleted":             {play("        state: absent\n        definition: {apiVersion: example.com/v1, kind: Thing}\n"), ""},
		"what a variable has":             {play("        definition: '{{ objects }}'\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := project(t, thing(), map[string]string{"config/crd.yaml": things, file: test.converge})
			p.customResources(t.Context())
			wantSample(t, p, file, test.want)
		})
	}
}

func TestAFileThatMoleculeAppliesIsCompared(t *testing.T) {
	p := project(t, thing(), map[string]string{
		"config/crd.yaml": things, "molecule/default/converge.yml": "- hosts: localhost\n  tasks:\n    - kubernetes.core.k8s: {src: files/one.yml}\n",
		"molecule/default/files/one.yml": "apiVersion: example.com/v1\nkind: Thing\nspec: {name: a, naem: b}\n",
	})
	p.customResources(t.Context())
	wantSample(t, p, "molecule/default/files/one.yml", "3 naem")
}

func TestADefinitionThatTheAPIServerRefuses(t *testing.T) {
	p := project(t, thing(), map[string]string{
		"config/crd.yaml": strings.Replace(things, "type: integer, default", "default", 1), "config/samples/one.yml": "apiVersion: example.com/v1\nkind: Thing\nspec: {}\n",
	})
	p.customResources(t.Context())
	want(t, p, "config/crd.yaml:1 error crd")
}

func wantSample(t *testing.T, p *Project, file, wanted string) {
	t.Helper()
	line, part, _ := strings.Cut(wanted, " ")
	if wanted == "" {
		want(t, p)
		return
	}
	want(t, p, file+":"+line+" error sample")
	if len(p.findings) == 1 && !strings.Contains(p.findings[0].Message, part) {
		t.Errorf("want %q, got %q", part, p.findings[0].Message)
	}
}
