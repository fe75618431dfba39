package objects

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/chart/manifest"
	"github.com/ensign-operator/ensign/internal/watches"
)

// read returns the objects of a YAML text.
func readAll(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestKeep(t *testing.T) {
	for why, test := range map[string]struct{ pointer, desired, live, want string }{
		"another value": {"/spec/replicas", "spec: {replicas: 1, a: b}", "spec: {replicas: 5, a: c}", "spec: {replicas: 5, a: b}"},
		"no value":      {"/spec/replicas", "spec: {replicas: 1, a: b}", "spec: {a: b}", "spec: {a: b}"},
		"a value of which the chart says nothing":  {"/spec/selector", "spec: {a: b}", "spec: {selector: {c: d}}", "spec: {a: b, selector: {c: d}}"},
		"a name with a slash and a tilde":          {"/data/a~1b~0", "data: {a/b~: c}", "data: {a/b~: d}", "data: {a/b~: d}"},
		"a name that looks escaped twice":          {"/data/~01", "data: {~1: c}", "data: {~1: d}", "data: {~1: d}"},
		"what holds it is gone":                    {"/data/a", "data: {a: b}", "kind: A", "data: {a: b}"},
		"what holds it is of another type":         {"/data/a", "data: {a: b}", "data: [a]", "data: {a: b}"},
		"an entry by its index":                    {"/l/1/a", "l: [{a: b}, {a: c}]", "l: [{a: x}, {a: w}]", "l: [{a: b}, {a: w}]"},
		"an entry by its index, at another place":  {"/l/0/a", "l: [{name: p, a: b}]", "l: [{name: m, a: x}, {name: p, a: w}]", "l: [{name: p, a: w}]"},
		"an entry by its name":                     {"/l/name=p/a", "l: [{name: m, a: b}, {name: p, a: c}]", "l: [{name: p, a: x}, {name: m, a: w}]", "l: [{name: m, a: b}, {name: p, a: x}]"},
		"an entry by a number":                     {"/l/port=80/a", "l: [{port: 80, a: b}]", "l: [{port: 80, a: x}]", "l: [{port: 80, a: x}]"},
		"all entries":                              {"/l/*/a", "l: [{name: m, a: b}, {name: p, a: c}]", "l: [{name: p, a: x}, {name: m, a: w}]", "l: [{name: m, a: w}, {name: p, a: x}]"},
		"a whole entry":                            {"/l/name=p", "l: [{name: m}, {name: p, a: c}]", "l: [{name: m}, {name: p, z: x}]", "l: [{name: m}, {name: p, z: x}]"},
		"a whole entry that is gone":               {"/l/name=p", "l: [{name: p, a: c}, {name: m}]", "l: [{name: m}]", "l: [{name: m}]"},
		"a field of an entry that is gone":         {"/l/name=p/a", "l: [{name: p, a: c}]", "l: [{name: m}]", "l: [{name: p, a: c}]"},
		"the end of a list is no entry":            {"/l/-/a", "l: [{a: b}]", "l: [{a: x}]", "l: [{a: b}]"},
		"nor is a number that RFC 6901 has not":    {"/l/00/a", "l: [{a: b}]", "l: [{a: x}]", "l: [{a: b}]"},
		"an index beyond the list":                 {"/l/3/a", "l: [{a: b}]", "l: [{a: x}]", "l: [{a: b}]"},
		"a star and an equals sign in a map":       {"/data/a=*", "data: {a=*: b, c: d}", "data: {a=*: x, c: x}", "data: {a=*: x, c: d}"},
		"a dash in a map":                          {"/data/-", "data: {'-': b}", "data: {'-': x}", "data: {'-': x}"},
		"an empty name":                            {"/data/", "data: {'': b}", "data: {'': x}", "data: {'': x}"},
		"an entry that is no map has no keys":      {"/l/name=p", "l: [a]", "l: [b]", "l: [a]"},
		"an entry that is no map, by its index":    {"/l/0", "l: [a]", "l: [b]", "l: [b]"},
		"an entry whose place is not there either": {"/l/1", "l: [a, b]", "l: [x]", "l: [a]"},
	} {
		t.Run(why, func(t *testing.T) {
			desired, live, want := readAll(t, test.desired)[0], readAll(t, test.live)[0], readAll(t, test.want)[0]
			pointer := Parse(test.pointer)
			keep(desired.Object, live.Object, pointer)
			if diff := cmp.Diff(want.Object, desired.Object); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if pointer.String() != test.pointer {
				t.Errorf("the pointer is %q", pointer)
			}
		})
	}
}

func TestWhatAnUpgradeKeeps(t *testing.T) {
	rules := NewIgnored([]watches.DriftIgnore{{Kind: "Deployment", Group: "apps", Pointers: []string{"/spec/replicas"}}})
	object := func(replicas string) *unstructured.Unstructured {
		return readAll(t, "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: "+replicas+"}")[0]
	}
	for why, test := range map[string]struct{ before, desired, want string }{
		"what the chart says as before":         {"1", "1", "5"},
		"but not what the chart itself changes": {"1", "2", "2"},
		"nor what the chart begins to say":      {"null", "2", "2"},
	} {
		desired, before := object(test.desired), (*unstructured.Unstructured)(nil)
		if test.before != "" {
			before = object(test.before)
		}
		rules.KeepIgnored(desired, object("5"), before)
		if diff := cmp.Diff(object(test.want).Object, desired.Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", why, diff)
		}
	}
}

func TestARuleIsForWhatItNames(t *testing.T) {
	object := readAll(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}")[0]
	for want, entries := range map[bool][]watches.DriftIgnore{
		true:  {{Kind: "Deployment"}, {Kind: "Deployment", Group: "apps"}, {Kind: "Deployment", Name: "a"}},
		false: {{Kind: "StatefulSet"}, {Kind: "Deployment", Group: "other"}, {Kind: "Deployment", Name: "b"}},
	} {
		for _, entry := range entries {
			rule := Rule{DriftIgnore: entry}
			if rule.Of(object) != want {
				t.Errorf("%+v: got %v", entry, !want)
			}
		}
	}
}

func TestWhatTheClusterFills(t *testing.T) {
	const (
		role    = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"
		webhook = "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\n"
		service = "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\n"
		claim   = "apiVersion: v1\nkind: PersistentVolumeClaim\n"
		deploy  = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1}\n"
		scaler  = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nspec: {scaleTargetRef: {kind: Deployment, name: web}}\n"
	)
	for why, test := range map[string]struct {
		text string
		want []string
	}{
		"the rules of an aggregated role":         {role + "aggregationRule: {clusterRoleSelectors: []}\nrules: []", []string{"/rules"}},
		"not where the chart says none":           {role + "aggregationRule: {}", nil},
		"not those of another role":               {role + "rules: []", nil},
		"nor of one whose rule is a null":         {role + "aggregationRule: null\nrules: []", nil},
		"the bundle of each webhook without one":  {webhook + "webhooks: [{name: a, clientConfig: {caBundle: ''}}, {name: b, clientConfig: {caBundle: Cg==}}, {name: c, clientConfig: {caBundle: YQ==}}, {name: d, clientConfig: {}}]", []string{"/webhooks/name=a/clientConfig/caBundle", "/webhooks/name=b/clientConfig/caBundle"}},
		"whatever it is where it is injected":     {webhook + "metadata: {annotations: {cert-manager.io/inject-ca-from: a/b}}\nwebhooks: [{name: a, clientConfig: {caBundle: YQ==}}]", []string{"/webhooks/name=a/clientConfig/caBundle"}},
		"the bundle of an API service":            {service + "spec: {caBundle: null}", []string{"/spec/caBundle"}},
		"not one that is no base64":               {service + "spec: {caBundle: '-'}", nil},
		"the bundle of a conversion":              {"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {conversion: {webhook: {clientConfig: {caBundle: ''}}}}", []string{"/spec/conversion/webhook/clientConfig/caBundle"}},
		"the volume of a claim":                   {claim + "spec: {volumeName: ''}", []string{"/spec/volumeName"}},
		"not the one that the chart names":        {claim + "spec: {volumeName: v}", nil},
		"addresses that the chart leaves open":    {"apiVersion: v1\nkind: Endpoints\nsubsets: []", []string{"/subsets"}},
		"replicas that the release's own scales":  {deploy + scaler, []string{"/spec/replicas"}},
		"not those that it does not":              {deploy + strings.Replace(scaler, "web", "other", 1), nil},
		"nor those of the same name elsewhere":    {strings.Replace(deploy, "{name: web}", "{name: web, namespace: else}", 1) + scaler, nil},
		"nor those of the same name, of no group": {"apiVersion: v1\nkind: ReplicationController\nmetadata: {name: web}\nspec: {replicas: 1}\n" + scaler, nil},
	} {
		t.Run(why, func(t *testing.T) {
			objects := readAll(t, test.text)
			var got []string
			for _, pointer := range ByCluster(objects[0], ScaledBy(objects, "ns"), "ns") {
				got = append(got, pointer.String())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestWhatTheClusterDeletes(t *testing.T) {
	for text, want := range map[string]bool{
		"{apiVersion: batch/v1, kind: Job, spec: {ttlSecondsAfterFinished: 0}}":             true,
		"{apiVersion: batch/v1, kind: Job, spec: {}}":                                       false,
		"{apiVersion: example.com/v1, kind: Job, spec: {ttlSecondsAfterFinished: 0}}":       false,
		"{apiVersion: batch/v1, kind: Job, spec: {ttlSecondsAfterFinished: null, a: null}}": false,
	} {
		if got := isTemporary(readAll(t, text)[0]); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}
