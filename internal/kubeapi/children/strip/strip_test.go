package strip

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return object
}

func transformer(t *testing.T) *Transformer {
	t.Helper()
	r, err := New(StatusFields{{Group: "apps", Kind: "Deployment"}: {"ready", "replicas"}}, "ours.example.com/finalizer")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhatIsKept(t *testing.T) {
	full := parse(t, `{"apiVersion": "v1", "kind": "Secret", "metadata": {
		"namespace": "ns", "name": "s", "uid": "u", "resourceVersion": "7", "generation": 3, "labels": {"a": "b"},
		"deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["a/b"],
		"ownerReferences": [{"apiVersion": "g.io/v1", "kind": "W", "name": "w", "uid": "o"}],
		"annotations": {"operator-sdk/primary-resource": "ns/w", "operator-sdk/primary-resource-type": "W.g.io", "other": "hidden"},
		"managedFields": [{"manager": "m"}]
	}, "data": {"password": "hidden"}}`)
	before := full.DeepCopy()
	got, err := transformer(t).Transform(full)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, full); diff != "" {
		t.Errorf("the object itself was changed: %s", diff)
	}
	object := got.(*Object)
	want := metav1.ObjectMeta{
		Namespace: "ns", Name: "s", UID: "u", ResourceVersion: "7", Generation: 3,
		DeletionTimestamp: full.GetDeletionTimestamp(),
		OwnerReferences:   []metav1.OwnerReference{{APIVersion: "g.io/v1", Kind: "W", Name: "w", UID: "o"}},
		Annotations:       map[string]string{"operator-sdk/primary-resource": "ns/w", "operator-sdk/primary-resource-type": "W.g.io"},
	}
	if diff := cmp.Diff(want, object.ObjectMeta); diff != "" {
		t.Error(diff)
	}
	if text := fmt.Sprintf("%+v", object); strings.Contains(text, "hidden") {
		t.Error(text)
	}
	if other, _ := transformer(t).Object(full); other.Digest == object.Digest {
		t.Error("two keys give one digest")
	}
}

const deployment = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "ns", "name": "d", "labels": {"a": "b"}},
	"spec": {"replicas": 1, "template": {"metadata": {"creationTimestamp": null}}}}`

const claim = `{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"namespace": "ns", "name": "c"},
	"spec": {"resources": {"requests": {"storage": "1Gi"}}}}`

// kstatus says that a Deployment has too few replicas, and not why.
func TestTheCauseOfTooFewReplicas(t *testing.T) {
	for name, test := range map[string]struct{ object, want string }{
		"paused": {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"paused":true,"replicas":2,"progressDeadlineSeconds":600},
			"status":{"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2,"conditions":[{"type":"Available","status":"True"},{"type":"Progressing","status":"Unknown","reason":"DeploymentPaused"}]}}`,
			"ReplicaSet not Available (it is paused)"},
		"quota": {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":1},"status":{"conditions":[{"type":"ReplicaFailure","status":"True","message":"exceeded quota: pods"}]}}`,
			"Replicas: 0/1 (exceeded quota: pods)"},
		"of another group": {`{"apiVersion":"a.io/v1","kind":"Game","metadata":{"name":"d"},"spec":{"paused":true},"status":{"conditions":[{"type":"Ready","status":"False","message":"no"}]}}`, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := transformer(t).Object(parse(t, test.object))
			if err != nil || got.Health == nil {
				t.Fatal(got, err)
			}
			if got.Health.Message != test.want {
				t.Errorf("got %q", got.Health.Message)
			}
		})
	}
}

func TestWhatIsADrift(t *testing.T) {
	for why, test := range map[string]struct {
		object string
		change string // a merge patch
		drift  bool
	}{
		"a field":                               {deployment, `{"spec": {"replicas": 2}}`, true},
		"a deep field":                          {deployment, `{"spec": {"template": {"spec": {"x": 1}}}}`, true},
		"a field that goes":                     {deployment, `{"spec": {"replicas": null}}`, true},
		"a label":                               {deployment, `{"metadata": {"labels": {"c": "d"}}}`, true},
		"a label that goes":                     {deployment, `{"metadata": {"labels": null}}`, true},
		"an annotation":                         {deployment, `{"metadata": {"annotations": {"c": "d"}}}`, true},
		"a finalizer of somebody":               {deployment, `{"metadata": {"finalizers": ["a/b"]}}`, true},
		"a field beside spec":                   {deployment, `{"data": {"a": "b"}}`, true},
		"status":                                {deployment, `{"status": {"replicas": 2}}`, false},
		"the resource version":                  {deployment, `{"metadata": {"resourceVersion": "8"}}`, false},
		"the generation":                        {deployment, `{"metadata": {"generation": 8}}`, false},
		"managed fields":                        {deployment, `{"metadata": {"managedFields": [{"manager": "m"}]}}`, false},
		"a deletion that waits for finalizers":  {deployment, `{"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 30}}`, false},
		"owners, of which children keeps watch": {deployment, `{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "a"}]}}`, false},
		"empty labels and finalizers":           {claim, `{"metadata": {"labels": {}, "annotations": {}, "finalizers": []}}`, false},
		"a foreground deletion":                 {deployment, `{"metadata": {"finalizers": ["foregroundDeletion"]}}`, false},
		"an orphaning deletion":                 {deployment, `{"metadata": {"finalizers": ["orphan"]}}`, false},
		"a finalizer of this manager":           {deployment, `{"metadata": {"finalizers": ["ours.example.com/finalizer"]}}`, false},
		"a finalizer of somebody beside":        {deployment, `{"metadata": {"finalizers": ["ours.example.com/finalizer", "a/b"]}}`, true},
		"a Deployment's revision":               {deployment, `{"metadata": {"annotations": {"deployment.kubernetes.io/revision": "2"}}}`, false},
		"a Deployment's revision and another":   {deployment, `{"metadata": {"annotations": {"deployment.kubernetes.io/revision": "2", "c": "d"}}}`, true},
		"a revision of what is no Deployment":   {claim, `{"metadata": {"annotations": {"deployment.kubernetes.io/revision": "2"}}}`, true},
		"a claim that is bound": {claim, `{"metadata": {
			"annotations": {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes",
				"volume.kubernetes.io/storage-provisioner": "p", "volume.beta.kubernetes.io/storage-provisioner": "p", "volume.kubernetes.io/selected-node": "n"},
			"finalizers": ["kubernetes.io/pvc-protection"]}, "spec": {"volumeName": "v"}, "status": {"phase": "Bound"}}`, false},
		"a claim that gets the default class": {claim, `{"spec": {"storageClassName": "fast"}}`, false},
		"a claim that grows":                  {claim, `{"spec": {"resources": {"requests": {"storage": "2Gi"}}}}`, true},
		"a volume that is bound": {`{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {"hostPath": {"path": "/"}}}`,
			`{"spec": {"claimRef": {"name": "c"}}, "metadata": {"finalizers": ["kubernetes.io/pv-protection"], "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}}}`, false},
		"a Pod that is scheduled":     {`{"apiVersion": "v1", "kind": "Pod", "spec": {"containers": []}}`, `{"spec": {"nodeName": "n"}, "metadata": {"labels": {"topology.kubernetes.io/zone": "z"}}}`, false},
		"a Pod that is edited":        {`{"apiVersion": "v1", "kind": "Pod", "spec": {"containers": []}}`, `{"spec": {"activeDeadlineSeconds": 3}}`, true},
		"a Secret's data":             {`{"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"a": "YQ=="}}`, `{"data": {"a": "Yg=="}}`, true},
		"a token that is generated":   {`{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token"}`, `{"data": {"token": "Yg=="}, "metadata": {"annotations": {"kubernetes.io/service-account.uid": "u"}}}`, false},
		"the rules of a role":         {`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []}`, `{"rules": [{"verbs": ["get"]}]}`, true},
		"rules that are aggregated":   {`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "aggregationRule": {}, "rules": []}`, `{"rules": [{"verbs": ["get"]}]}`, false},
		"an aggregation":              {`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "aggregationRule": {}, "rules": []}`, `{"aggregationRule": {"clusterRoleSelectors": []}}`, true},
		"endpoints of a selector":     {`{"apiVersion": "v1", "kind": "Endpoints", "metadata": {"labels": {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}}}`, `{"subsets": [{"ports": []}]}`, false},
		"endpoints without selector":  {`{"apiVersion": "v1", "kind": "Endpoints"}`, `{"subsets": [{"ports": []}]}`, true},
		"a namespace that is ended":   {`{"apiVersion": "v1", "kind": "Namespace", "spec": {"finalizers": ["kubernetes"]}}`, `{"spec": null}`, false},
		"a custom object of any kind": {`{"apiVersion": "g.io/v1", "kind": "W", "spec": {"nodeName": "a"}}`, `{"spec": {"nodeName": "b"}}`, true},
	} {
		t.Run(why, func(t *testing.T) {
			r := transformer(t)
			before := parse(t, test.object)
			after := before.DeepCopy()
			merge(after.Object, parsePatch(t, test.change))
			if got := mustStrip(t, r, before).Digest != mustStrip(t, r, after).Digest; got != test.drift {
				t.Errorf("drift: %v, want %v", got, test.drift)
			}
		})
	}
}

func TestStatusFields(t *testing.T) {
	before := parse(t, deployment)
	merge(before.Object, parsePatch(t, `{"status": {"ready": false, "replicas": {"a": 1}, "other": "x"}}`))
	known := mustStrip(t, transformer(t), before).Status
	if len(known) != 2 {
		t.Fatalf("kept %v, want ready and replicas", known)
	}
	for why, test := range map[string]struct {
		change string
		want   []string
	}{
		"a field":                         {`{"status": {"ready": true}}`, []string{"ready"}},
		"what is deep in a field":         {`{"status": {"replicas": {"a": 2}}}`, []string{"replicas"}},
		"a field that goes":               {`{"status": {"ready": null}}`, []string{"ready"}},
		"a status that goes":              {`{"status": null}`, []string{"ready", "replicas"}},
		"a status that is no mapping":     {`{"status": "gone"}`, []string{"ready", "replicas"}},
		"another field":                   {`{"status": {"other": "y"}}`, nil},
		"the spec":                        {`{"spec": {"ready": true}}`, nil},
		"a key that another manager made": {`{}`, nil},
	} {
		t.Run(why, func(t *testing.T) {
			after := before.DeepCopy()
			merge(after.Object, parsePatch(t, test.change))
			now := mustStrip(t, transformer(t), after).Status
			var changed []string
			for _, field := range []string{"ready", "replicas"} {
				if known[field] != now[field] {
					changed = append(changed, field)
				}
			}
			if diff := cmp.Diff(test.want, changed); diff != "" {
				t.Error(diff)
			}
		})
	}
	if status := mustStrip(t, transformer(t), parse(t, claim)).Status; status != nil {
		t.Errorf("of another kind it keeps %v", status)
	}
}

func TestKeysHaveNoOrder(t *testing.T) {
	r := transformer(t)
	one := parse(t, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"finalizers": ["a/b"], "labels": {"a": "1", "b": "2"}}, "data": {"a": "1", "b": "2"}}`)
	other := parse(t, `{"kind": "ConfigMap", "apiVersion": "v1", "data": {"b": "2", "a": "1"}, "metadata": {"labels": {"b": "2", "a": "1"}, "finalizers": ["a/b"]}}`)
	if mustStrip(t, r, one).Digest != mustStrip(t, r, other).Digest {
		t.Error("two digests of one content")
	}
}

// Text must not move between labels and annotations, or fields, unseen.
func TestPartsAreKeptApart(t *testing.T) {
	r := transformer(t)
	seen := map[Digest]string{}
	for _, text := range []string{
		`{"apiVersion": "v1", "kind": "ConfigMap"}`,
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {"a": "b"}}}`,
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"annotations": {"a": "b"}}}`,
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"finalizers": ["a"]}}`,
		`{"apiVersion": "v1", "kind": "ConfigMap", "a": "b"}`,
	} {
		digest := mustStrip(t, r, parse(t, text)).Digest
		if twin, ok := seen[digest]; ok {
			t.Errorf("%s and %s have one digest", text, twin)
		}
		seen[digest] = text
	}
}

// Each entry must hide what it names, of its own kind only.
func TestEveryEntryOfTheTableCounts(t *testing.T) {
	r := transformer(t)
	for kind, what := range ignoredByKind() {
		for _, path := range what.fields {
			plain := &unstructured.Unstructured{Object: map[string]any{}}
			plain.SetGroupVersionKind(kind.WithVersion("v1"))
			plain.SetLabels(map[string]string{"endpoints.kubernetes.io/managed-by": "endpoint-controller"})
			plain.Object["type"], plain.Object["aggregationRule"] = "kubernetes.io/service-account-token", map[string]any{}
			changed := plain.DeepCopy()
			if err := unstructured.SetNestedField(changed.Object, "x", path...); err != nil {
				t.Fatal(err)
			}
			expect(t, r, kind, strings.Join(path, "."), plain, changed)
		}
		for _, name := range slices.Concat(what.labels, what.annotations, what.finalizers) {
			plain := &unstructured.Unstructured{Object: map[string]any{}}
			plain.SetGroupVersionKind(kind.WithVersion("v1"))
			changed := plain.DeepCopy()
			if slices.Contains(what.labels, name) {
				changed.SetLabels(map[string]string{name: "x"})
			}
			if slices.Contains(what.annotations, name) {
				changed.SetAnnotations(map[string]string{name: "x"})
			}
			if slices.Contains(what.finalizers, name) {
				changed.SetFinalizers([]string{name})
			}
			expect(t, r, kind, name, plain, changed)
		}
	}
}

func expect(t *testing.T, r *Transformer, kind schema.GroupKind, what string, plain, changed *unstructured.Unstructured) {
	t.Helper()
	if mustStrip(t, r, plain).Digest != mustStrip(t, r, changed).Digest {
		t.Errorf("%s of %s is a drift", what, kind)
	}
	for _, object := range []*unstructured.Unstructured{plain, changed} {
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: "other.io", Version: "v1", Kind: "Other"})
	}
	if mustStrip(t, r, plain).Digest == mustStrip(t, r, changed).Digest {
		t.Errorf("%s is no drift of other kinds either", what)
	}
}

func mustStrip(t *testing.T, r *Transformer, object *unstructured.Unstructured) *Object {
	t.Helper()
	stripped, err := r.Object(object)
	if err != nil {
		t.Fatal(err)
	}
	return stripped
}

func parsePatch(t *testing.T, text string) map[string]any {
	t.Helper()
	patch := map[string]any{}
	if err := json.Unmarshal([]byte(text), &patch); err != nil {
		t.Fatal(err)
	}
	return patch
}

// merge applies a JSON merge patch.
func merge(object, patch map[string]any) {
	for key, value := range patch {
		below, nested := value.(map[string]any)
		current, ok := object[key].(map[string]any)
		switch {
		case value == nil:
			delete(object, key)
		case nested && ok:
			merge(current, below)
		case nested:
			object[key] = maps.Clone(below)
		default:
			object[key] = value
		}
	}
}

func TestWhoWroteLast(t *testing.T) {
	entry := func(manager, second, fields, more string) string {
		return `{"manager": "` + manager + `", "operation": "Update", "time": "2026-01-02T03:04:` + second + `Z", "fieldsV1": ` + fields + more + `}`
	}
	const both = `{"f:data": {"f:a": {}, "f:b": {}}}`
	run := entry("run", "05", both, "")
	for why, test := range map[string]struct {
		entries []string
		want    []Writer
	}{
		"one has no need of fields":          {[]string{run}, []Writer{{Manager: "run"}}},
		"nobody is known":                    {[]string{`{"manager": "run"}`}, nil},
		"a later one":                        {[]string{run, entry("rival", "06", `{"f:data": {"f:c": {}, "f:b": {}}}`, "")}, []Writer{{"rival", "data.c"}}},
		"an earlier one":                     {[]string{run, entry("rival", "04", `{"f:data": {"f:c": {}}}`, "")}, []Writer{{"run", "data.a, data.b"}}},
		"two in a second":                    {[]string{run, entry("rival", "05", `{"f:data": {"f:c": {}}}`, "")}, []Writer{{"run", "data.a, data.b"}, {"rival", "data.c"}}},
		"not of the status":                  {[]string{run, entry("rival", "06", both, `, "subresource": "status"`)}, []Writer{{Manager: "run"}}},
		"the elements of a set are values":   {[]string{run, entry("rival", "06", `{"f:spec": {"f:words": {"v:\"secret\"": {}, "v:\"other\"": {}}}}`, "")}, []Writer{{"rival", "spec.words"}}},
		"an entry of a list has its key":     {[]string{run, entry("rival", "06", `{"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {"f:image": {}}}}}`, "")}, []Writer{{"rival", `spec.containers[name="main"].image`}}},
		"of many fields the first are named": {[]string{run, entry("rival", "06", `{"f:data": {"f:c": {}, "f:d": {}, "f:e": {}, "f:f": {}, "f:g": {}}}`, "")}, []Writer{{"rival", "data.c, data.d, data.e and 2 more"}}},
		"a long name is cut":                 {[]string{run, entry("rival", "06", `{"f:data": {"f:`+strings.Repeat("é", 300)+`": {}}}`, "")}, []Writer{{"rival", "data." + strings.Repeat("é", 125)}}},
		"nothing harms a terminal":           {[]string{run, entry("rival", "06", `{"f:data": {"f:\u001b[2J": {}}}`, "")}, []Writer{{"rival", "data.\ufffd[2J"}}},
		"no fields can be read":              {[]string{run, entry("rival", "06", `{"f:data": 1}`, "")}, []Writer{{Manager: "rival"}}},
	} {
		t.Run(why, func(t *testing.T) {
			full := parse(t, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "managedFields": [`+strings.Join(test.entries, ",")+`]}}`)
			object, err := transformer(t).Object(full)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, object.Writers); diff != "" {
				t.Error(diff)
			}
		})
	}
}
