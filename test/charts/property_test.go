package charts

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	applying "github.com/ensign-operator/ensign/internal/chart/objects"
)

func pick(r *rand.Rand, texts ...string) string { return texts[r.IntN(len(texts))] }

// generators make the text of a random object of each kind, as charts write it: with nulls, without keys that have defaults,
// with keys that stand twice, and with a member of each union.
var generators = map[schema.GroupVersionResource]func(*rand.Rand) string{
	{Version: "v1", Resource: "configmaps"}: func(r *rand.Rand) string {
		return "apiVersion: v1\nkind: ConfigMap\ndata: " + pick(r, "{a: b}", "{a: c, d: e}", "null", "{}") + "\nbinaryData: " + pick(r, "null", "{x: AAAA}", "{a2: AAAA}") + "\n"
	},
	{Version: "v1", Resource: "secrets"}: func(r *rand.Rand) string {
		return "apiVersion: v1\nkind: Secret\nstringData: " + pick(r, "{a: b}", "{a: c, d: e}", "{}", "{a: ''}") + "\ndata: " + pick(r, "null", "{a: eA==}", "{z: eA==}") + "\n"
	},
	{Version: "v1", Resource: "serviceaccounts"}: func(r *rand.Rand) string {
		return "apiVersion: v1\nkind: ServiceAccount\nimagePullSecrets: " + pick(r, "null", "[{name: a}]", "[{name: b}, {name: a}]", "[]") + "\n"
	},
	{Version: "v1", Resource: "services"}: func(r *rand.Rand) string {
		return "apiVersion: v1\nkind: Service\nspec:\n  selector: {a: b}\n  " + pick(r, "type: ClusterIP", "type: NodePort", "type: LoadBalancer\n  loadBalancerSourceRanges: [10.0.0.0/8]", "clusterIP: ''") +
			"\n  ports: " + pick(r, "[{name: a, port: 80}]", "[{name: a, port: 81, targetPort: web}, {name: b, port: 53, protocol: UDP}]", "[{port: 80}]") + "\n"
	},
	{Group: "apps", Version: "v1", Resource: "deployments"}: func(r *rand.Rand) string {
		env := pick(r, "{name: X, value: a}", "{name: X, valueFrom: {fieldRef: {fieldPath: metadata.name}}}", "{name: X, value: a}, {name: X, value: b}", "{name: Q, value: ''}", "{name: X, value: 'true'}, {name: Z}")
		return "apiVersion: apps/v1\nkind: Deployment\nspec:\n  selector: {matchLabels: {a: b}}\n  replicas: " + pick(r, "null", "2", "0") +
			"\n  strategy: " + pick(r, "{type: Recreate}", "{type: RollingUpdate, rollingUpdate: {maxSurge: 2}}", "null", "{}") +
			"\n  template:\n    metadata: {labels: {a: b}, annotations: " + pick(r, "null", "{x: z}") + "}\n    spec:\n      securityContext: " +
			pick(r, "{}", "{runAsNonRoot: true, readOnlyRootFilesystem: true}", "{seccompProfile: {type: RuntimeDefault}}", "{seccompProfile: {type: Localhost, localhostProfile: p}}") +
			"\n      volumes: [{name: v, " + pick(r, "emptyDir: {}", "configMap: {name: c}", "secret: {secretName: s}") + "}]\n      containers:\n      - {name: main, image: a, env: [" + env + "], resources: " +
			pick(r, "{limits: {cpu: 1000m, memory: 1024Mi}}", "{limits: {cpu: 1}, requests: {cpu: '0.5'}}", "null") + ", livenessProbe: " + pick(r, "{httpGet: {port: 80}}", "{exec: {command: [a]}}", "null") +
			", ports: " + pick(r, "[{containerPort: 80}]", "[{containerPort: 80, name: web}, {containerPort: 80, protocol: UDP}]", "null") + "}\n" + pick(r, "", "      - {name: sidecar, image: b}\n")
	},
	{Group: tank.Group, Version: tank.Version, Resource: "tanks"}: func(r *rand.Rand) string {
		return "apiVersion: parts.example.com/v1\nkind: Tank\nspec:\n  size: " + pick(r, "1", "null") + "\n  valves: " + pick(r, "[a]", "null", "[]") + "\n  labels: " + pick(r, "{a: b}", "null", "{}") +
			"\n  limit: " + pick(r, "null", "x") + "\n  unknown: " + pick(r, "null", "1") + "\n  pipes: " + pick(r, "[{name: a}]", "[{name: a, count: 2}, {name: b}]", "null") + "\n"
	},
}

// others are changes by other clients.
var others = map[string][]string{
	"configmaps": {`{"data":{"a":"theirs","x2":"y"}}`, `{"data":null}`}, "secrets": {`{"data":{"a":"eg==","other":"eg=="}}`}, "serviceaccounts": {`{"imagePullSecrets":[{"name":"theirs"}]}`},
	"services":    {`{"spec":{"sessionAffinity":"ClientIP"}}`, `{"spec":{"type":"NodePort"}}`, `{"spec":{"externalIPs":["1.2.3.4"]}}`},
	"deployments": {`{"spec":{"replicas":7}}`, `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}`, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"x","env":[{"name":"X","value":"theirs"}]},{"name":"more","image":"m"}]}}}}`, `{"spec":{"template":{"spec":{"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"p"}}]}}}}`},
	"tanks":       {`{"spec":{"size":9,"valves":["x"]}}`, `{"spec":{"pipes":[{"name":"a","count":7}]}}`, `{"spec":{"free":{"x":"y"}}}`},
}

var _ = DescribeTable("a comparison right after an apply finds no difference, whatever was there", func(ctx context.Context, byClient bool) {
	s := newSite(ctx, nil)
	client, err := dynamic.NewForConfig(ground.Cluster.Config)
	Expect(err).NotTo(HaveOccurred())
	seed := uint64(GinkgoRandomSeed())
	r := rand.New(rand.NewPCG(seed, 1)) // Tests may be repeated.
	applier := &applying.Applier{Name: "r", Namespace: s.Namespace, ByClient: byClient}
	patched := 0
	// In one order, so that a seed gives the same objects again.
	kinds := slices.SortedFunc(maps.Keys(generators), func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) })
	for _, resource := range kinds {
		generate := generators[resource]
		at := client.Resource(resource).Namespace(s.Namespace)
		for i := range 12 {
			name := fmt.Sprintf("o-%d", i)
			var before *unstructured.Unstructured
			for step := range 4 {
				want := &unstructured.Unstructured{}
				text := generate(r)
				Expect(yaml.Unmarshal([]byte(text), &want.Object)).To(Succeed())
				want.SetName(name)
				want.SetNamespace(s.Namespace)
				want.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": s.Namespace})
				what := fmt.Sprintf("seed %d, %s %d, step %d:\n%s", seed, resource.Resource, i, step, text)
				applied, err := applier.Apply(ctx, at, want, before, applying.Options{})
				Expect(err).NotTo(HaveOccurred(), what)
				if applied.Patched != nil {
					patched++
				}
				none, err := applier.Apply(ctx, at, want, want.DeepCopy(), applying.Options{DryRun: true})
				Expect(err).NotTo(HaveOccurred(), what)
				Expect(none.Differences).To(BeEmpty(), what+cmp.Diff(none.Live, none.Applied))
				change := pick(r, others[resource.Resource]...)
				kind := types.StrategicMergePatchType
				if resource.Group == tank.Group {
					kind = types.MergePatchType
				}
				_, _ = at.Patch(ctx, name, kind, []byte(change), metav1.PatchOptions{FieldManager: "others"}) // The API server may refuse it beside the chart's text.
				drifted, err := applier.Apply(ctx, at, want, want.DeepCopy(), applying.Options{DryRun: true})
				Expect(err).NotTo(HaveOccurred(), what+change)
				repaired, err := applier.Apply(ctx, at, want, want.DeepCopy(), applying.Options{})
				Expect(err).NotTo(HaveOccurred(), what+change)
				Expect(repaired.Differences).To(Equal(drifted.Differences), what+change)
				none, err = applier.Apply(ctx, at, want, want.DeepCopy(), applying.Options{DryRun: true})
				Expect(err).NotTo(HaveOccurred(), what+change)
				Expect(none.Differences).To(BeEmpty(), what+change+cmp.Diff(none.Live, none.Applied))
				before = want
			}
		}
	}
	GinkgoWriter.Printf("%d objects were patched because server-side apply refused them\n", patched)
	if byClient {
		Expect(patched).To(BeZero())
	} else {
		Expect(patched).To(BeNumerically(">", 0))
	}
},
	Entry("by the server", false),
	Entry("by the client", true),
)

// Server-side apply leaves a probe's defaults, which nobody holds, and the API server refuses a probe without a handler.
var _ = It("a probe that was patched goes when the chart drops it", func(ctx context.Context) {
	s := newSite(ctx, nil)
	client, err := dynamic.NewForConfig(ground.Cluster.Config)
	Expect(err).NotTo(HaveOccurred())
	at := client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(s.Namespace)
	applier := &applying.Applier{Name: "r", Namespace: s.Namespace}
	var before *unstructured.Unstructured
	for _, step := range []struct{ security, probe string }{
		{"{}", "{exec: {command: [a]}}"},
		{"{unknown: true}", "{httpGet: {port: 80}}"}, // Server-side apply refuses a field that is not declared.
		{"{}", "null"},
	} {
		want := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte("apiVersion: apps/v1\nkind: Deployment\nspec:\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec:\n      securityContext: "+
			step.security+"\n      containers: [{name: main, image: a, livenessProbe: "+step.probe+"}]\n"), &want.Object)).To(Succeed())
		want.SetName("probed")
		want.SetNamespace(s.Namespace)
		applied, err := applier.Apply(ctx, at, want, before, applying.Options{})
		Expect(err).NotTo(HaveOccurred(), step.probe)
		before = want
		if step.probe != "null" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(applied.Applied.Object, "spec", "template", "spec", "containers")
		Expect(err).NotTo(HaveOccurred())
		Expect(containers).To(ConsistOf(Not(HaveKey("livenessProbe"))))
	}
})
