package objects

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/ensign-operator/ensign/internal/chart/manifest"
	"github.com/ensign-operator/ensign/internal/watches"
)

func TestRefusal(t *testing.T) {
	resource, kind := schema.GroupResource{Resource: "things"}, schema.GroupKind{Kind: "Thing"}
	internal := func(text string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: text}}
	}
	for want, errs := range map[string][]error{
		"": {
			nil, errors.New("connection refused"), context.DeadlineExceeded, apierrors.NewTooManyRequests("", 1), apierrors.NewServerTimeout(resource, "get", 1),
			apierrors.NewTimeoutError("", 1), apierrors.NewServiceUnavailable(""), apierrors.NewInternalError(errors.New("etcdserver: request timed out")),
			apierrors.NewUnauthorized(""), apierrors.NewConflict(resource, "a", errors.New("")), apierrors.NewNotFound(resource, "a"),
		},
		"Forbidden":        {apierrors.NewForbidden(resource, "a", errors.New("")), fmt.Errorf("read: %w", apierrors.NewForbidden(resource, "a", errors.New("")))},
		"Invalid":          {apierrors.NewInvalid(kind, "a", nil)},
		"BadRequest":       {apierrors.NewBadRequest("admission webhook does not support dry run")},
		"MethodNotAllowed": {apierrors.NewMethodNotSupported(resource, "get")},
		"Gone":             {&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusGone}}},
		"NotServed":        {&meta.NoKindMatchError{GroupKind: kind}, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, "a", "404 page not found", 0, true)},
		"Unfit":            {internal("failed to create typed patch object (a/b; v1, Kind=Thing): .spec.env: duplicate entries for key"), internal("failed to convert live object")},
		"WebhookFailed":    {apierrors.NewInternalError(errors.New(`failed calling webhook "a": connection refused`))},
	} {
		for _, err := range errs {
			if got := Reason(err); got != want {
				t.Errorf("%v: got %q, want %q", err, got, want)
			}
		}
	}
}

// cluster has ConfigMaps and Namespaces.
func cluster(objects ...runtime.Object) *manifest.Cluster {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, meta.RESTScopeNamespace)
	return &manifest.Cluster{Client: fake.NewSimpleDynamicClient(runtime.NewScheme(), objects...), Mapper: mapper, Namespace: "ns"}
}

func configMap(name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": value},
		"metadata": map[string]any{
			"name": name, "namespace": "ns", "labels": map[string]any{"app.kubernetes.io/managed-by": "Helm"},
			"annotations": map[string]any{"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "ns"},
		},
	}}
}

// refusing makes the API server refuse objects by their name, and apply others as they are.
func refusing(t *testing.T, at *manifest.Cluster, refusals map[string]error, applied *[]string) {
	t.Helper()
	client, _ := at.Client.(*fake.FakeDynamicClient)
	client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch, _ := action.(clienttesting.PatchActionImpl)
		if err := refusals[patch.GetName()]; err != nil {
			return true, nil, err
		}
		if len(patch.PatchOptions.DryRun) == 0 {
			*applied = append(*applied, patch.GetNamespace()+"/"+patch.GetName())
		}
		object := &unstructured.Unstructured{}
		return true, object, object.UnmarshalJSON(patch.GetPatch())
	})
}

const document = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: b}\n"

func parsed(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestOneThatCannotBeComparedHidesNoOther(t *testing.T) {
	var text strings.Builder
	for _, name := range []string{"refused", "failing", "same", "changed", "gone"} {
		fmt.Fprintf(&text, document, name)
	}
	text.WriteString("---\napiVersion: example.com/v1\nkind: Thing\nmetadata: {name: unknown}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: some-}\n")
	var applied []string
	d := &Detector{
		Cluster: cluster(configMap("refused", "x"), configMap("failing", "x"), configMap("same", "b"), configMap("changed", "x")),
		Applier: Applier{Name: "r", Namespace: "ns"},
	}
	refusing(t, d.Cluster, map[string]error{"refused": apierrors.NewBadRequest("no dry run"), "failing": apierrors.NewTooManyRequests("later", 1)}, &applied)
	found, err := d.Find(t.Context(), parsed(t, text.String()))
	if err == nil || !strings.Contains(err.Error(), "compare ConfigMap ns/failing: later") || strings.Contains(err.Error(), "refused") {
		t.Errorf("got the error %v", err)
	}
	got := fmt.Sprint(found.Drifted)
	for _, one := range found.Refused {
		got += "\n" + one.Name + " " + one.Reason
	}
	want := "[ConfigMap ns/changed (/data/a) ConfigMap ns/gone (missing)]\nConfigMap ns/refused BadRequest\nThing unknown NotServed\nConfigMap some-… NoName"
	if got != want {
		t.Errorf("got %s", got)
	}

	refusing(t, d.Cluster, map[string]error{"changed": apierrors.NewForbidden(schema.GroupResource{}, "changed", errors.New("not for you"))}, &applied)
	repaired, err := d.Repair(t.Context(), found.Drifted)
	if err == nil || !strings.HasPrefix(err.Error(), "repair ConfigMap ns/changed (/data/a): ") || len(repaired) != 1 || len(applied) != 1 || applied[0] != "ns/gone" {
		t.Errorf("repaired %v, applied %q: %v", repaired, applied, err)
	}
}

func TestWhatAManifestMayHold(t *testing.T) {
	temporary := "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {ttlSecondsAfterFinished: 1}\n"
	elsewhere := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: else}\n"
	wide := "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: ns}\n"
	for why, test := range map[string]struct{ text, want string }{
		"an object twice is the last one": {fmt.Sprintf(document, "a") + strings.Replace(fmt.Sprintf(document, "a"), "{name: a}", "{name: a, namespace: ns}\nimmutable: true", 1), "[ConfigMap ns/a (/immutable)]"},
		"an object in another namespace":  {elsewhere, "[ConfigMap else/a (missing)]"},
		"a namespace for what has none":   {wide, "[Namespace a (missing)]"},
		"a Job that the cluster deletes":  {temporary, "[]"},
		"a list":                          {"apiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: x}}, {metadata: {name: w}}]", "[ConfigMap ns/x (missing) ConfigMap ns/w (missing)]"},
	} {
		var applied []string
		d := &Detector{Cluster: cluster(configMap("a", "b")), Applier: Applier{Name: "r", Namespace: "ns"}}
		refusing(t, d.Cluster, nil, &applied)
		found, err := d.Find(t.Context(), parsed(t, test.text))
		if err != nil || fmt.Sprint(found.Drifted) != test.want || len(found.Refused) > 0 {
			t.Errorf("%s: got %s, %v, %v", why, found.Drifted, found.Refused, err)
		}
	}
}

func TestIgnoredFieldsAreNoDriftAndUnusedOnesAreNamed(t *testing.T) {
	live := configMap("a", "theirs")
	d := &Detector{Cluster: cluster(live), Applier: Applier{Name: "r", Namespace: "ns", Ignored: NewIgnored([]watches.DriftIgnore{
		{Kind: "ConfigMap", Pointers: []string{"/data/a", "/data/none"}},
		{Kind: "ConfigMap", Name: "gone", Pointers: []string{"/data/x"}},
		{Kind: "ConfigMap", Group: "apps", Pointers: []string{"/data/a"}}, {Kind: "Deployment", Pointers: []string{"/spec/replicas"}},
	})}}
	var applied []string
	refusing(t, d.Cluster, nil, &applied)
	found, err := d.Find(t.Context(), parsed(t, fmt.Sprintf(document, "a")+fmt.Sprintf(document, "gone")))
	if err != nil || fmt.Sprint(found.Drifted) != "[ConfigMap ns/gone (missing)]" {
		t.Errorf("got %v, %v", found.Drifted, err)
	}
	// Of what is missing, nobody knows whether it would have the
	want := []string{"/data/a of ConfigMap.apps", "/spec/replicas of Deployment"}
	var got []string
	for _, rule := range found.Unused {
		got = append(got, rule.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
