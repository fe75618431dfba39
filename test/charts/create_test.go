package charts

import (
	"context"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	applying "github.com/ensign-operator/ensign/internal/chart/objects"
)

// deploymentOf is a Deployment with these fields of its spec, its pod's and its container's.
func deploymentOf(spec, pod, container string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nspec:\n  selector: {matchLabels: {a: b}}\n" + spec + "  template:\n    metadata: {labels: {a: b}, creationTimestamp: null}\n    spec:\n" + pod + "      containers:\n      - {name: main, image: a" + container + "}\n"
}

// asCharts are objects as charts of public trackers render them. An upgrade makes the second text of the first.
var asCharts = map[string][2]string{
	"deployments: readOnlyRootFilesystem for a pod (hashicorp/terraform-provider-helm#1721)": {deploymentOf("", "      securityContext: {runAsNonRoot: true, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false}\n", ""), ""},
	"deployments: a variable twice (helm/helm#11416)":                                        {deploymentOf("", "", ", env: [{name: NAME, value: null}, {name: NAME, value: b}, {name: M, value: '3'}]"), deploymentOf("", "", ", env: [{name: NAME, value: c}, {name: NAME, value: d}]")},
	"deployments: a port twice, with two names (bitnami/charts#25218)":                       {deploymentOf("", "", ", ports: [{containerPort: 80, name: a}, {containerPort: 80, name: b}]"), deploymentOf("", "", ", ports: [{containerPort: 80, name: a}]")},
	"deployments: a port by two protocols (kubernetes/kubernetes#39188)":                     {deploymentOf("", "", ", ports: [{containerPort: 53, name: a}, {containerPort: 53, name: b, protocol: UDP}]"), deploymentOf("", "", ", ports: [{containerPort: 53, name: b, protocol: UDP}]")},
	"deployments: nulls wherever values are empty (FairwindsOps/polaris#205)":                {deploymentOf("  replicas: null\n  strategy: null\n", "      nodeSelector: null\n      affinity: null\n      tolerations: null\n      volumes: null\n      imagePullSecrets: null\n      securityContext: null\n", ", env: null, resources: null, livenessProbe: null, volumeMounts: null, securityContext: null"), ""},
	"deployments: nulls in resources and security contexts (bitnami/charts#24159)":           {deploymentOf("", "", ", resources: {limits: {cpu: null, memory: 1Gi}, requests: null}, livenessProbe: {httpGet: {path: null, port: 80}, exec: null}, securityContext: {seLinuxOptions: null}"), ""},
	"deployments: pull secrets without a name (helm/helm#9259)":                              {deploymentOf("", "      imagePullSecrets: [{}]\n", ""), deploymentOf("", "      imagePullSecrets: [{name: a}]\n", "")},
	"deployments: aliases of a host twice":                                                   {deploymentOf("", "      hostAliases: [{ip: 1.2.3.4, hostnames: [a]}, {ip: 1.2.3.4, hostnames: [b]}]\n", ""), ""},
	"deployments: an empty status":                                                           {deploymentOf("", "", "") + "status: {}\n", ""},
	"deployments: a misspelt field of a container (argoproj/argo-cd#18924)":                  {deploymentOf("", "", ", imagepullPolicy: Always, comand: [a]"), ""},
	"deployments: a field of the wrong place (akuity/kargo#1532)":                            {deploymentOf("  restartPolicy: Always\n", "", ""), ""},
	"deployments: another strategy (helm/helm#5144)":                                         {deploymentOf("", "", ""), deploymentOf("  strategy: {type: Recreate}\n", "", "")},
	"deployments: a variable by value, then by reference (kubernetes/kubernetes#46861)":      {deploymentOf("", "", ", env: [{name: NAME, value: a}]"), deploymentOf("", "", ", env: [{name: NAME, valueFrom: {secretKeyRef: {name: a, key: b}}}]")},
	"deployments: another source of a volume (helm/helm#8994)":                               {deploymentOf("", "      volumes: [{name: v}]\n", ""), deploymentOf("", "      volumes: [{name: v, secret: {secretName: s}}]\n", "")},
	"services: a port by two protocols (kubernetes/kubernetes#105610)":                       {"apiVersion: v1\nkind: Service\nspec: {selector: {a: b}, ports: [{name: a, port: 53}, {name: b, port: 53, protocol: UDP}]}\n", "apiVersion: v1\nkind: Service\nspec: {selector: {a: b}, ports: [{name: b, port: 53, protocol: UDP}]}\n"},
	"services: nulls": {"apiVersion: v1\nkind: Service\nspec: {selector: {a: b}, clusterIP: null, loadBalancerIP: null, externalIPs: null, type: ClusterIP, ports: [{name: a, port: 80, nodePort: null}]}\n", "apiVersion: v1\nkind: Service\nspec: {selector: {a: b}, type: NodePort, ports: [{name: a, port: 80, nodePort: null}]}\n"},
	"services: from a load balancer to an internal one":                                                {"apiVersion: v1\nkind: Service\nspec: {selector: {a: b}, type: LoadBalancer, loadBalancerSourceRanges: [10.0.0.0/8], externalTrafficPolicy: Local, ports: [{port: 80}]}\n", "apiVersion: v1\nkind: Service\nspec: {selector: {a: b}, type: ClusterIP, ports: [{port: 80}]}\n"},
	"configmaps: a null among the data":                                                                {"apiVersion: v1\nkind: ConfigMap\ndata: {a: null, b: c}\n", "apiVersion: v1\nkind: ConfigMap\ndata: {a: b, b: null}\n"},
	"configmaps: a key that becomes binary":                                                            {"apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n", "apiVersion: v1\nkind: ConfigMap\nbinaryData: {a: AAAA}\n"},
	"secrets: nulls and both kinds of data (kubernetes/kubernetes#108008)":                             {"apiVersion: v1\nkind: Secret\ndata: {a: eA==, n: null}\nstringData: {a: b, c: d}\n", "apiVersion: v1\nkind: Secret\nstringData: {a: b}\n"},
	"serviceaccounts: nulls":                                                                           {"apiVersion: v1\nkind: ServiceAccount\nautomountServiceAccountToken: null\nimagePullSecrets: null\nsecrets: null\n", ""},
	"tanks: nulls in a custom resource (apecloud/kubeblocks-addons#3502)":                              {"apiVersion: parts.example.com/v1\nkind: Tank\nspec: {size: 1, valves: null, labels: null, mode: null, pipes: null}\n", "apiVersion: parts.example.com/v1\nkind: Tank\nspec: {size: null, valves: [a], mode: x}\n"},
	"tanks: a map that becomes empty (helm/helm#31516)":                                                {"apiVersion: parts.example.com/v1\nkind: Tank\nspec: {labels: {a: b}, free: {a: {b: c}}}\n", "apiVersion: parts.example.com/v1\nkind: Tank\nspec: {labels: {}, free: {a: {}}}\n"},
	"tanks: fields that the kind does not declare (fluvio-community/fluvio#4610)":                      {"apiVersion: parts.example.com/v1\nkind: Tank\nspec: {size: 1, source: x, pipes: [{name: a, unknown: 1}]}\n", "apiVersion: parts.example.com/v1\nkind: Tank\nspec: {size: 2, source: z}\n"},
	"tanks: nulls in entries of a list (elastic/cloud-on-k8s#8975)":                                    {"apiVersion: parts.example.com/v1\nkind: Tank\nspec: {pipes: [{name: a, count: null, bends: null}]}\n", "apiVersion: parts.example.com/v1\nkind: Tank\nspec: {pipes: [{name: a, count: 2}, {name: b, count: null}]}\n"},
	"deployments: a pull secret whose name is null (MinBZK/mijn-bureau-infra#424)":                     {deploymentOf("", "      imagePullSecrets: [{name: null}]\n", ""), ""},
	"deployments: a null beside another strategy (DevOps-Nirvana/Universal-Kubernetes-Helm-Charts#18)": {deploymentOf("  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}\n", "", ""), deploymentOf("  strategy: {type: Recreate, rollingUpdate: null}\n", "", "")},
	"deployments: ports that become one (kubernetes/kubernetes#108148)":                                {deploymentOf("", "", ", ports: [{containerPort: 9090, name: a, protocol: TCP}, {containerPort: 9091, name: b, protocol: TCP}]"), deploymentOf("", "", ", ports: [{containerPort: 9090, name: a, protocol: TCP}, {containerPort: 9090, name: b, protocol: TCP}]")},
	"deployments: another number of a port of the same name (kubernetes/kubernetes#113246)":            {deploymentOf("", "", ", ports: [{containerPort: 8080, name: http}]"), deploymentOf("", "", ", ports: [{containerPort: 8081, name: http}]")},
	"services: a second protocol that comes (kubernetes/kubernetes#131918)":                            {"apiVersion: v1\nkind: Service\nspec: {selector: {a: b}, ports: [{name: tcp-80, port: 80, protocol: TCP}]}\n", "apiVersion: v1\nkind: Service\nspec: {selector: {a: b}, ports: [{name: udp-80, port: 80, protocol: UDP}, {name: tcp-80, port: 80, protocol: TCP}]}\n"},
	"services: another number of a port of the same name (helm/helm#11606)":                            {"apiVersion: v1\nkind: Service\nspec: {selector: {a: b}, ports: [{name: http, port: 123}, {name: more, port: 124}]}\n", "apiVersion: v1\nkind: Service\nspec: {selector: {a: b}, ports: [{name: http, port: 125}, {name: more, port: 124}]}\n"},
	"persistentvolumeclaims: nulls":                                                                    {"apiVersion: v1\nkind: PersistentVolumeClaim\nspec: {accessModes: [ReadWriteOnce], storageClassName: null, selector: null, volumeName: null, resources: {requests: {storage: 1Gi}}}\n", ""},
	"poddisruptionbudgets: the other bound, and a null (grafana-community/helm-charts#674)":            {"apiVersion: policy/v1\nkind: PodDisruptionBudget\nspec: {selector: {matchLabels: {a: b}}, maxUnavailable: 1, minAvailable: null}\n", "apiVersion: policy/v1\nkind: PodDisruptionBudget\nspec: {selector: {matchLabels: {a: b}}, minAvailable: 1, maxUnavailable: null}\n"},
}

var _ = Describe("values that a create accepts", Label("long"), func() {
	for of, texts := range asCharts {
		resource, _, _ := strings.Cut(of, ":")
		It("an apply accepts, with the same result: "+of, func(ctx context.Context) {
			s := newSite(ctx, nil)
			client, err := dynamic.NewForConfig(ground.Cluster.Config)
			Expect(err).NotTo(HaveOccurred())
			applier := &applying.Applier{Name: "r", Namespace: s.Namespace}
			var before *unstructured.Unstructured
			for _, text := range texts {
				if text == "" {
					continue
				}
				want := &unstructured.Unstructured{}
				Expect(yaml.Unmarshal([]byte(text), &want.Object)).To(Succeed())
				kind := want.GroupVersionKind()
				at := client.Resource(kind.GroupVersion().WithResource(resource)).Namespace(s.Namespace)
				want.SetGenerateName("created-")
				created, err := at.Create(ctx, want, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred(), text)

				want = &unstructured.Unstructured{}
				Expect(yaml.Unmarshal([]byte(text), &want.Object)).To(Succeed())
				want.SetName("applied")
				result, err := applier.Apply(ctx, at, want, before, applying.Options{})
				Expect(err).NotTo(HaveOccurred(), text)
				Expect(cmp.Diff(content(created), content(result.Applied))).To(BeEmpty(), text)
				again, err := applier.Apply(ctx, at, want, want.DeepCopy(), applying.Options{DryRun: true})
				Expect(err).NotTo(HaveOccurred(), text)
				Expect(again.Differences).To(BeEmpty(), text)
				before = want
			}
		})
	}
})

// content returns the content of an object, without what the API server draws for each.
func content(object *unstructured.Unstructured) map[string]any {
	object = object.DeepCopy()
	for _, path := range [][]string{{"metadata"}, {"status"}, {"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "healthCheckNodePort"}} {
		unstructured.RemoveNestedField(object.Object, path...)
	}
	ports, _, _ := unstructured.NestedSlice(object.Object, "spec", "ports")
	for _, port := range ports {
		if fields, ok := port.(map[string]any); ok {
			delete(fields, "nodePort")
		}
	}
	if ports != nil {
		_ = unstructured.SetNestedSlice(object.Object, ports, "spec", "ports")
	}
	return object.Object
}
