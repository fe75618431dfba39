package check

const (
	main       = "roles/NAME/tasks/main.yml"
	deployment = "roles/NAME/templates/deployment.yml.j2"
	crd        = "config/crd/NAME.yaml"
	sample     = "config/samples/NAME.yaml"
	specs      = "roles/NAME/meta/argument_specs.yml"
	rbac       = "config/rbac/NAME_role.yaml"
)

// plants are what authors get wrong, as their commits that mend it show: in tasks, templates,
// variables, watches.yaml, definitions, roles for the API server, samples and charts.
var plants = []plant{
	// Tasks.
	{about: "a module is misspelt", file: main, from: "k8s_info:", to: "k8s_inof:", want: main + ":30 missing-plugin"},
	{about: "a module that is gone", file: main, from: "kubernetes.core.k8s_info:", to: "k8s_facts:", want: main + ":30 missing-plugin", alsoFinds: []string{main + ":29 syntax"}},
	{about: "an option of a module is misspelt", file: main, from: "wait_timeout:", to: "wait_timout:", want: main + ":27 module-option|wait_timeout"},
	{about: "an option has a value that it can't have", file: main, from: "state: present", to: "state: presnet", want: main + ":9 module-option|present"},
	{about: "a keyword of a task is misspelt", file: main, from: "  register: NAME_pods", to: "  regster: NAME_pods", want: main + ":29 syntax", alsoFinds: []string{main + ":38 undefined-variable"}},
	{about: "a file of tasks is misspelt", file: main, from: "rest.yml", to: "rset.yml", want: main + ":42 missing-file"},
	{about: "a template is misspelt", file: main, from: "deployment.yml.j2", to: "deploymnet.yml.j2", want: main + ":25 missing-file"},
	{about: "a file is misspelt", file: main, from: "motd.txt", to: "modt.txt", want: main + ":20 missing-file"},
	{about: "a handler is misspelt", file: main, from: "notify: Tell it", to: "notify: Tell It", want: main + ":21 missing-handler"},
	{about: "a collection that is not installed", file: main, from: "ansible.builtin.debug:", to: "community.general.say:", want: main + ":37 missing-collection"},
	{about: "a line is indented wrongly", file: main, from: "      data:", to: "     data:", want: main + ":9 syntax"},
	{about: "an object has no name", file: main, from: "        name: \"{{ ansible_operator_meta.name }}\"\n", to: "", want: main + ":8 object|name"},
	{about: "an object has no namespace", file: main, from: "        namespace: \"{{ NAME_namespace }}\"\n        labels", to: "        labels", want: main + ":8 object|namespace"},
	{about: "a kind is misspelt", file: main, from: "kind: ConfigMap", to: "kind: Configmap", want: main + ":8 object|ConfigMap"},
	{about: "a kind of another group", file: main, from: "    kind: Pod", to: "    api_version: extensions/v1\n    kind: Deployment", want: main + ":30 object|apps/v1", alsoFinds: []string{main + ":30 missing-right"}},
	{about: "a text where a condition belongs", file: main, from: "  when: NAME_pods.resources | length > 0", to: "  when: NAME_pods.resources | length", want: main + ":39 non-boolean-condition"},
	{about: "a number where Kubernetes wants a text", file: main, from: "{{ size | string }}", to: "{{ size }}", want: main + ":19 native-type"},
	{about: "an object without a namespace belongs to a resource with one", file: main, from: "kind: ConfigMap", to: "kind: PersistentVolume", want: main + ":8 other-namespace", alsoFinds: []string{main + ":8 missing-right"}},

	// Variables and templates.
	{about: "a field of the spec is misspelt", file: main, from: `eviction: "{{ eviction }}"`, to: `eviction: "{{ evction }}"`, want: main + ":18 undefined-variable|eviction"},
	{about: "a field has its name in camel case", file: main, from: `eviction: "{{ eviction }}"`, to: `eviction: "{{ passwordSecret }}"`, want: main + ":18 undefined-variable|password_secret"},
	{about: "a default is misspelt", file: main, from: `labels: "{{ NAME_labels }}"`, to: `labels: "{{ NAME_lables }}"`, want: main + ":16 undefined-variable|NAME_labels"},
	{about: "a result is misspelt", file: main, from: "{{ NAME_pods.resources", to: "{{ NAME_pod.resources", want: main + ":38 undefined-variable|NAME_pods"},
	{about: "a variable that nobody defines", file: main, from: `eviction: "{{ eviction }}"`, to: `eviction: "{{ cluster_domain }}"`, want: main + ":18 undefined-variable"},
	{about: "the resource's name as operators called it once", file: main, from: `name: "{{ ansible_operator_meta.name }}"`, to: `name: "{{ meta.name }}"`, want: main + ":14 undefined-variable|ansible_operator_meta"},
	{about: "a result has the name of a field", file: main, from: "register: NAME_pods", to: "register: ports", want: main + ":34 shadowed-variable", alsoFinds: []string{main + ":38 undefined-variable"}},
	{about: "a block of a template has no end", file: deployment, from: "{% endfor %}\n", to: "", want: deployment + ":22 jinja"},
	{about: "a variable of a template is misspelt", file: deployment, from: "{{ size }}", to: "{{ szie }}", want: deployment + ":7 undefined-variable|size"},
	{about: "a filter is misspelt", file: deployment, from: "{{ image | to_json }}", to: "{{ image | to_jsn }}", want: deployment + ":16 missing-plugin"},
	{about: "a field of an element is misspelt", file: deployment, from: "port.number", to: "port.nubmer", want: deployment + ":21 undefined-variable|number", alsoFinds: []string{deployment + ":21 yaml-text"}},
	{about: "a role without tasks", file: "roles/NAME/tasks/main.yml", want: "watches.yaml:4 watches|tasks/main.yml", alone: true},

	// watches.yaml.
	{about: "a key of a watch is misspelt", file: "watches.yaml", from: "reconcilePeriod:", to: "reconcilePeriode:", want: "watches.yaml:5 watches|reconcilePeriod", alone: true},
	{about: "a period without a unit", file: "watches.yaml", from: "10m", to: "10 minutes", want: "watches.yaml:5 watches", alone: true},
	{about: "a role that is not there", file: "watches.yaml", from: "role: NAME\n", to: "role: NAM\n", want: "watches.yaml:4 watches", alone: true},
	{about: "a finalizer's name with a space", file: "watches.yaml", from: "name: shop.example.com/NAME", to: "name: shop.example.com/good bye", want: "watches.yaml:13 watches", alone: true},
	{about: "a selector that selects nothing", file: "watches.yaml", from: "{shop: open}", to: "{shop: is open}", want: "watches.yaml:7 watches", alone: true},
	{about: "a reference to a field that is not there", file: "watches.yaml", from: "spec.passwordSecret", to: "spec.secretName", want: "watches.yaml:11 reference-path", alone: true},
	{about: "a version that the definition does not have", file: "watches.yaml", from: "- version: v1\n  group", to: "- version: v1beta1\n  group", want: "watches.yaml:1 crd", alone: true, alsoFinds: []string{deployment + ":7 yaml-text", deployment + ":21 yaml-text"}},
	{about: "a chart that is not there", file: "watches.yaml", from: "  role: NAME\n", to: "  chart: charts/NAME\n", want: "watches.yaml:4 watches", alone: true, alsoFinds: []string{"watches.yaml:13 watches|finalizer", "watches.yaml:1 missing-right"}},

	// What the API server has.
	{about: "a right is missing", file: rbac, from: "[configmaps, secrets, pods]", to: "[configmaps, secrets]", want: main + ":30 missing-right|list pods", alone: true},
	{about: "a verb is missing", file: rbac, from: "[get, list, watch, patch]", to: "[get, list, watch]", want: "watches.yaml:1 missing-right|patch", alone: true},
	{about: "the subresource status is missing", file: crd, from: "      subresources: {status: {}}\n", to: "", want: crd + ":10 crd"},
	{about: "the definition has no such field, and the role requires it", file: crd, from: "              required: [image]\n              properties:\n                image: {type: string, pattern: '^[a-z0-9./:-]+$'}\n", to: "              properties:\n", want: specs + ":5 argument-spec|image", alsoFinds: []string{sample + ":6 sample|image", "molecule/NAME/converge.yml:15 sample|image"}},
	{about: "the role wants another type than the definition", file: specs, from: "        type: int\n", to: "        type: bool\n", want: specs + ":9 argument-spec|size", alsoFinds: []string{sample + ":7 sample|bool"}},
	{about: "a sample has a field that the definition drops", file: sample, from: "  size: 2", to: "  sise: 2", want: sample + ":7 sample|size"},
	{about: "a sample has a value of another type", file: sample, from: "  size: 2", to: "  size: two", want: sample + ":7 sample|integer"},
	{about: "the role refuses a value that the definition allows", file: specs, from: "[allow, deny]", to: "[allow-all, deny]", want: specs + ":13 argument-spec|allow", alsoFinds: []string{sample + ":8 sample|eviction"}},
	{about: "a sample lacks what is required", file: sample, from: "  image: registry.example.com/shop:1\n", to: "", want: sample + ":5 sample|image"},
	{about: "a sample breaks a rule of the definition", file: sample, from: "  size: 2", to: "  size: 20", want: sample + ":5 sample|eviction deny"},
	{about: "a sample of a kind that nobody watches", file: sample, from: "kind: KIND", to: "kind: KINDs", want: sample + ":2 sample|mean KIND?"},
	{about: "Molecule applies a field that the definition drops", file: "molecule/NAME/converge.yml", from: "            size: 1", to: "            sizes: 1", want: "molecule/NAME/converge.yml:16 sample|size"},

	// What only a run can show.
	{about: "an image that is not there", file: sample, from: "shop:1", to: "shp:1", whyNot: "only the registry knows its images"},
	{about: "a selector that fits no label of the pods", file: main, from: "name=shop", to: "name=shpo", whyNot: "labels come from everywhere, and an empty list is no fault"},
	{about: "a condition that is turned round", file: main, from: "NAME_pods.resources | length > 0", to: "NAME_pods.resources | length < 0", whyNot: "only its author knows what was meant"},
}
