package rights

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// The API server serves Kubernetes' own kinds by the plurals that apimachinery guesses.
func TestPluralsOfKubernetesOwnKinds(t *testing.T) {
	for gvk := range scheme.Scheme.AllKnownTypes() {
		want, _ := meta.UnsafeGuessKindToResource(gvk)
		if got := guess(gvk.GroupVersion(), gvk.Kind).resource; got != want.Resource && !strings.HasSuffix(gvk.Kind, "List") && !strings.HasSuffix(gvk.Kind, "Options") && gvk.Kind != "APIVersions" {
			t.Errorf("%s: want %s, got %s", gvk.Kind, want.Resource, got)
		}
	}
}

func TestTheKindOfAPlural(t *testing.T) {
	crds := definitions(t, [4]string{"example.com", "Thing", "things", "th"}, [4]string{"example.com", "Pods", "podses"})
	for name, want := range map[string]string{
		"ConfigMaps": "ConfigMap", "configmap": "ConfigMap", "Ingresses": "Ingress", "Things": "Thing",
		"ConfigMap": "", "Endpoints": "", "Thing": "", "Pods": "", "Gadgets": "", "Deploy": "",
	} {
		if got := OfPlural(name, crds); got != want {
			t.Errorf("%s: want %q, got %q", name, want, got)
		}
	}
}

// TestTheKindThatAClientMeans has what the client of kubernetes.core does: K8SClient.resource of
// its module_utils/k8s/client.py, and Discoverer.get.
func TestTheKindThatAClientMeans(t *testing.T) {
	crds := definitions(
		t, [4]string{"example.com", "Thing", "things", "th"}, [4]string{"a.example.com", "Twin", "twins"}, [4]string{"b.example.com", "Twin", "twins"},
		[4]string{"example.com", "Pod", "pods"}, [4]string{"example.com", "Ingress", "ingresses"},
	)
	for name, test := range map[string]struct{ version, kind, group, resource string }{
		"of the core":                         {"v1", "ConfigMap", "", "configmaps"},
		"of a group that is named":            {"apps/v1", "Deployment", "apps", "deployments"},
		"of a group that is not":              {"v1", "Deployment", "apps", "deployments"},
		"in an older version":                 {"v1beta1", "CronJob", "batch", "cronjobs"},
		"of whichever group, by its plural":   {"v1", "statefulsets", "apps", "statefulsets"},
		"by its singular":                     {"apps/v1", "deployment", "apps", "deployments"},
		"by its short name":                   {"v1", "sts", "apps", "statefulsets"},
		"the core's before another group's":   {"v1", "Pod", "", "pods"},
		"which has Events too":                {"v1", "Event", "", "events"},
		"a kind of the project":               {"v1", "Thing", "example.com", "things"},
		"by its short name too":               {"v1", "th", "example.com", "things"},
		"in a version that it does not have":  {"v2", "Thing", "?", ""},
		"of two groups: the client refuses":   {"v1", "Twin", "?", ""},
		"also if one is Kubernetes' own":      {"v1", "Ingress", "?", ""},
		"one of the two that is named":        {"b.example.com/v1", "Twin", "b.example.com", "twins"},
		"of a group that is not known at all": {"v1", "Gadget", "?", ""},
		"unless it is named":                  {"gadgets.org/v1", "Gadget", "gadgets.org", "gadgets"},
		"of OpenShift":                        {"v1", "Route", "route.openshift.io", "routes"},
		"that client-go does not know":        {"v1", "CustomResourceDefinition", "apiextensions.k8s.io", "customresourcedefinitions"},
		"with a plural of its own":            {"k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", "k8s.cni.cncf.io", "network-attachment-definitions"},
		"a list":                              {"v1", "DeploymentList", "apps", "deployments"},
		"a plural like its singular":          {"v1", "Endpoints", "", "endpoints"},
		"no version":                          {"a/b/c", "Pod", "?", ""},
	} {
		t.Run(name, func(t *testing.T) {
			found, known := find(test.version, test.kind, crds)
			if known != (test.group != "?") || known && (found.group != test.group || found.resource != test.resource) {
				t.Errorf("got %+v, known: %v", found, known)
			}
		})
	}
	if found, _ := exactly("v1", "Deployment", nil); found.group != "" {
		t.Errorf("a client that asks the core alone got %+v", found)
	}
	for kind, want := range map[string]bool{"ClusterRole": true, "Deployment": false, "Twin": false, "Namespace": true, "ns": true} {
		if got := ClusterScoped("v1", kind, crds); got != want {
			t.Errorf("%s: got %v", kind, got)
		}
	}
}

// definitions are CRDs, which serve v1; each is its group, kind, plural and short name.
func definitions(t *testing.T, all ...[4]string) []schema.CRD {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{}
	for n, names := range all {
		files[fmt.Sprintf("%d.yaml", n)] = fmt.Sprintf(`kind: CustomResourceDefinition
spec:
  group: %s
  scope: Namespaced
  names: {kind: %s, plural: %s, shortNames: [%s]}
  versions: [{name: v1, served: true}]
`, names[0], names[1], names[2], names[3])
	}
	scratch.Write(t, dir, files)
	return schema.Load(dir)
}
