package bundle

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// deployed are the objects of a small operator.
const deployed = `apiVersion: v1
kind: Namespace
metadata: {name: shop-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: shop-manager, namespace: shop-system}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: stores.example.com}
spec:
  group: example.com
  names: {kind: Store, plural: stores}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, description: A store.}}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: shop-manager}
rules: [{apiGroups: [example.com], resources: [stores], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: shop-store-viewer}
rules: [{apiGroups: [example.com], resources: [stores], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: shop-leader, namespace: shop-system}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: shop-manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: shop-manager}
subjects: [{kind: ServiceAccount, name: shop-manager, namespace: shop-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: shop-leader, namespace: shop-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: shop-leader}
subjects: [{kind: ServiceAccount, name: shop-manager, namespace: shop-system}]
---
apiVersion: v1
kind: Service
metadata: {name: shop-metrics, namespace: shop-system}
spec: {ports: [{port: 8443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop-manager, namespace: shop-system, labels: {part-of: shop}}
spec:
  template:
    spec:
      containers:
        - {name: sidecar, image: other}
        - {name: manager, image: "shop:1", env: [{name: WATCH_NAMESPACE, value: ""}, {name: A, value: b}]}
`

const samples = `apiVersion: example.com/v1
kind: Store
metadata: {name: store-sample}
---
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {password: hunter2}
`

func objects(t *testing.T, text string) (all []*unstructured.Unstructured) {
	t.Helper()
	for document := range strings.SplitSeq(text, "---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

func input(t *testing.T, deployed string) Bundle {
	t.Helper()
	words := objects(t, "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: shop.v0.1.0}\nspec: {displayName: Shop, version: 0.1.0}\n")
	return Bundle{Words: words[0], Icon: []byte("<svg/>"), Objects: objects(t, deployed), Samples: objects(t, samples), Channel: "stable"}
}

func TestABundleHasWhatTheLifecycleManagerTakes(t *testing.T) {
	b := input(t, deployed)
	b.Version = "v1.4.0" // An older version is upgraded to it, whichever it is.
	made, err := b.Files()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range made {
		names = append(names, name)
	}
	want := map[string]bool{"Dockerfile": true, "metadata/annotations.yaml": true, "manifests/clusterserviceversion.shop.v1.4.0.yaml": true, "manifests/customresourcedefinition.stores.example.com.yaml": true, "manifests/service.shop-metrics.yaml": true, "manifests/clusterrole.shop-store-viewer.yaml": true}
	for _, name := range names {
		if !want[name] {
			t.Errorf("it has %s", name)
		}
	}
	if len(names) != len(want) {
		t.Errorf("it has %q alone", names)
	}
	const version = `---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  annotations:
    alm-examples: |-
      [
        {
          "apiVersion": "example.com/v1",
          "kind": "Store",
          "metadata": {
            "name": "store-sample"
          }
        }
      ]
    containerImage: shop:1
    olm.skipRange: <1.4.0
  name: shop.v1.4.0
spec:
  customresourcedefinitions:
    owned:
    - description: A store.
      displayName: Store
      kind: Store
      name: stores.example.com
      version: v1
  displayName: Shop
  icon:
  - base64data: PHN2Zy8+
    mediatype: image/svg+xml
  install:
    spec:
      clusterPermissions:
      - rules:
        - apiGroups:
          - example.com
          resources:
          - stores
          verbs:
          - get
        serviceAccountName: shop-manager
      deployments:
      - label:
          part-of: shop
        name: shop-manager
        spec:
          template:
            spec:
              containers:
              - image: other
                name: sidecar
              - env:
                - name: A
                  value: b
                - name: WATCH_NAMESPACE
                  valueFrom:
                    fieldRef:
                      fieldPath: metadata.annotations['olm.targetNamespaces']
                image: shop:1
                name: manager
      permissions:
      - rules:
        - apiGroups:
          - coordination.k8s.io
          resources:
          - leases
          verbs:
          - get
        serviceAccountName: shop-manager
    strategy: deployment
  version: 1.4.0
`
	if diff := cmp.Diff(version, string(made["manifests/clusterserviceversion.shop.v1.4.0.yaml"])); diff != "" {
		t.Error(diff)
	}
	for name, part := range map[string]string{
		"metadata/annotations.yaml":           "  operators.operatorframework.io.bundle.channels.v1: stable\n",
		"Dockerfile":                          "LABEL operators.operatorframework.io.bundle.package.v1=shop\n",
		"manifests/service.shop-metrics.yaml": "metadata:\n  name: shop-metrics\nspec:",
	} {
		if !strings.Contains(string(made[name]), part) {
			t.Errorf("want %q in %s:\n%s", part, name, made[name])
		}
	}
	if b.Version = ""; b.Words.GetName() != "shop.v0.1.0" {
		t.Error("the input has changed")
	}
	if made, err := b.Files(); err != nil || made["manifests/clusterserviceversion.shop.v0.1.0.yaml"] == nil {
		t.Errorf("without a version: %v", err)
	}
}

func TestWhatNoBundleCanBeMadeOf(t *testing.T) {
	for why, test := range map[string]struct{ old, with, version, want string }{
		"a version that is none":      {"", "", "next", `the version "next": write one such as 1.2.3`},
		"a binding to a missing role": {"kind: Role\n", "kind: ClusterRole\n", "", "RoleBinding shop-leader: want a role of config/rbac and one account"},
		"a webhook":                   {"kind: Service\n", "kind: ValidatingWebhookConfiguration\n", "", "a bundle cannot have this kind"},
		"no kind":                     {"kind: CustomResourceDefinition\n", "kind: ConfigMap\n", "", "create api adds one"},
		"no Deployment":               {"kind: Deployment\n", "kind: ConfigMap\n", "", "there is no Deployment"},
	} {
		t.Run(why, func(t *testing.T) {
			b := input(t, strings.Replace(deployed, test.old, test.with, 1))
			b.Version = test.version
			if _, err := b.Files(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("want an error with %q, got %v", test.want, err)
			}
		})
	}
}
