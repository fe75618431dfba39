package chart

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/harness/manifests"
)

func parse(text string) manifests.Objects {
	GinkgoHelper()
	found, err := manifests.Parse(text)
	Expect(err).NotTo(HaveOccurred())
	return found
}

// template renders the chart as the release that config/ resembles.
func template(ctx context.Context, args ...string) manifests.Objects {
	GinkgoHelper()
	return parse(helm(ctx, append([]string{"template", "ensign", chartDir, "--namespace=ensign-system", "--no-hooks"}, args...)...))
}

func kustomize(ctx context.Context, directories ...string) manifests.Objects {
	GinkgoHelper()
	all := ""
	for _, directory := range directories {
		output, err := run(ctx, os.Environ(), cluster.Kubectl, "kustomize", filepath.Join("config", directory))
		Expect(err).NotTo(HaveOccurred(), output)
		all += "\n---\n" + output
	}
	return parse(all)
}

var _ = Describe("Rendering", func() {
	It("passes helm's linter", func(ctx SpecContext) {
		Expect(helm(ctx, "lint", "--strict", chartDir)).To(ContainSubstring("0 chart(s) failed"))
	})

	DescribeTable("makes the objects of", func(ctx SpecContext, directories string, values ...string) {
		want, got := kustomize(ctx, strings.Fields(directories)...), template(ctx, values...)
		Expect(len(want)).To(BeNumerically(">", 10))
		Expect(cmp.Diff(want, got)).To(BeEmpty(), "- config/, + the chart")
	},
		Entry("config/default with the default values", "default"),
		Entry("the high-availability overlay", "overlays/high-availability", "--set=replicas=2"),
		Entry("the overlay of shards", "overlays/shards", "--set=shards=3"),
		Entry("the overlay for runs in Jobs", "overlays/jobs", "--set=jobs.enabled=true"),
		Entry("config/prometheus and config/network-policy", "default prometheus network-policy",
			"--set=metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true,networkPolicy.enabled=true"),
	)

	It("makes the objects of the namespaced overlay", func(ctx SpecContext) {
		want, got := kustomize(ctx, "overlays/namespaced"), template(ctx, "--set=watchNamespaces={ensign-system}")
		container := want["Deployment ensign-system/ensign-manager"]["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0]
		for _, variable := range container.(map[string]any)["env"].([]any) {
			if variable := variable.(map[string]any); variable["name"] == "WATCH_NAMESPACE" { // There, the pod's own.
				delete(variable, "valueFrom")
				variable["value"] = "ensign-system"
			}
		}
		Expect(cmp.Diff(want, got)).To(BeEmpty(), "- config/, + the chart")
	})

	It("reaches beyond its namespaces with nothing where that is switched off", func(ctx SpecContext) {
		for key := range template(ctx, "--set=watchNamespaces={a,b},metrics.enabled=false,userRoles.enabled=false,crds.enabled=false") {
			Expect(key).NotTo(Or(HavePrefix("Cluster"), HavePrefix("CustomResource")))
		}
	})

	It("has another name for all that is not in the namespace, in another release", func(ctx SpecContext) {
		other := parse(helm(ctx, "template", "green", chartDir, "--set=crds.enabled=false,metrics.prometheusRule.enabled=true"))
		for key := range template(ctx) {
			Expect(other).NotTo(HaveKey(key))
		}
		Expect(fmt.Sprint(other)).To(ContainSubstring("--leader-election-id=green-ensign."))
	})

	DescribeTable("applies a value", func(ctx SpecContext, set, want string) {
		text, err := yaml.Marshal(template(ctx, "--set-json="+set)["Deployment ensign-system/ensign-manager"])
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(MatchRegexp(want))
	},
		Entry(nil, `image.tag="1.2"`, `image: ensign:1.2\n`),
		Entry("the digest before the tag", `image={"tag": "1.2", "digest": "sha256:`+strings.Repeat("ab", 32)+`"}`, `image: ensign@sha256:(ab){32}\n`),
		Entry(nil, `image.pullPolicy="Always"`, `imagePullPolicy: Always`),
		Entry(nil, `image.pullSecrets=["one","two"]`, `imagePullSecrets:\n +- name: one\n +- name: two`),
		Entry(nil, `replicas=0`, `replicas: 0`),
		Entry("two managers at once are not allowed", `leaderElection.enabled=false`, `type: Recreate`),
		Entry(nil, `watchNamespaces=["a","b"]`, `WATCH_NAMESPACE\n +value: a,b`),
		Entry(nil, `logFormat="json"`, `- --log-format=json`),
		Entry(nil, `warm=false`, `- --warm=false`),
		Entry(nil, `maxConcurrentRuns=7`, `- --max-concurrent-runs=7`),
		Entry(nil, `maxConcurrentReconciles=5`, `- --max-concurrent-reconciles=5`),
		Entry(nil, `gathering="smart"`, `ANSIBLE_GATHERING\n +value: smart`),
		Entry("at the end, where they win", `extraArgs=["--max-backoff=1m"]`, `- --max-backoff=1m\n +env:`),
		Entry(nil, `extraEnv=[{"name":"A","value":"b"}]`, `- name: A\n +value: b`),
		Entry(nil, `extraVolumes=[{"name":"v","emptyDir":{}}]`, `- emptyDir: \{\}\n +name: v`),
		Entry(nil, `extraVolumeMounts=[{"name":"v","mountPath":"/v"}]`, `- mountPath: /v\n +name: v`),
		Entry(nil, `resources={"limits":{"memory":"2Gi"}}`, `memory: 2Gi`),
		Entry(nil, `tmpSizeLimit="3Gi"`, `sizeLimit: 3Gi`),
		Entry(nil, `podAnnotations={"a":"b"}`, `annotations:\n +a: b`),
		Entry(nil, `podLabels={"c":"d"}`, `component: manager\n.*\n +c: d\n`),
		Entry(nil, `priorityClassName="high"`, `priorityClassName: high\n`),
		Entry("a tag and its digest", `image.tag="1.2@sha256:`+strings.Repeat("ab", 32)+`"`, `image: ensign:1.2@sha256:(ab){32}\n`),
		Entry(nil, `nodeSelector={"a":"b"}`, `nodeSelector:\n +a: b`),
		Entry(nil, `tolerations=[{"key":"a"}]`, `tolerations:\n +- key: a`),
		Entry(nil, `affinity={"nodeAffinity":{}}`, `affinity:\n +nodeAffinity`),
		Entry(nil, `topologySpreadConstraints=[{"maxSkew":2}]`, `topologySpreadConstraints:\n +- maxSkew: 2`),
		Entry(nil, `metrics.enabled=false`, `- --metrics-bind-address=0\n`),
	)

	DescribeTable("refuses", func(ctx SpecContext, set, want string) {
		output, err := tryHelm(ctx, "template", "ensign", chartDir, "--set-json="+set)
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring(want))
	},
		Entry("an unknown key", `imagee={}`, `'imagee' not allowed`),
		Entry("an unknown key below another", `image={"name":"x"}`, `'name' not allowed`),
		Entry("an unknown key below metrics", `metrics.serviceMonitor={"enable":true}`, `'enable' not allowed`),
		Entry("text for a number", `replicas="2"`, `at '/replicas'`),
		Entry("a negative number", `replicas=-1`, `at '/replicas'`),
		Entry("no slots", `maxConcurrentRuns=0`, `at '/maxConcurrentRuns'`),
		Entry("text for a list", `watchNamespaces="a,b"`, `at '/watchNamespaces'`),
		Entry("a name that no namespace has", `watchNamespaces=["a.b"]`, `at '/watchNamespaces/0'`),
		Entry("a namespace twice", `watchNamespaces=["a","a"]`, `at '/watchNamespaces'`),
		Entry("a format that the manager does not know", `logFormat="xml"`, `at '/logFormat'`),
		Entry("text for a switch", `warm="yes"`, `at '/warm'`),
		Entry("a digest without its kind", `image.digest="abc"`, `at '/image/digest'`),
		Entry("an image without a name", `image.repository=""`, `at '/image/repository'`),
		Entry("a policy that Kubernetes does not know", `image.pullPolicy="Sometimes"`, `at '/image/pullPolicy'`),
		Entry("an argument that is none", `extraArgs=["max-backoff"]`, `at '/extraArgs/0'`),
		Entry("a variable without a name", `extraEnv=[{"value":"x"}]`, `at '/extraEnv/0'`),
		Entry("a variable that another value sets", `extraEnv=[{"name":"WATCH_NAMESPACE","value":"x"}]`, `at '/extraEnv/0/name'`),
		Entry("a size that is none", `tmpSizeLimit="much"`, `at '/tmpSizeLimit'`),
		Entry("an annotation that is not a string", `podAnnotations={"a":true}`, `at '/podAnnotations/a'`),
		Entry("a label by which the manager is known", `podLabels={"app.kubernetes.io/name":"x"}`, `invalid propertyName 'app.kubernetes.io/name'`),
		Entry("a digest for a tag", `image.tag="sha256:abc"`, `at '/image/tag'`),
		Entry("the values of an older chart", `jobs=null`, `use --reset-then-reuse-values`),
		Entry("replicas without a lease", `leaderElection={"enabled":false},replicas=2`, "replicas above 1 need leaderElection.enabled"),
	)
})

var _ = Describe("The table of values in docs/howto-helm.md", func() {
	It("has every value with its default", func() {
		text, err := os.ReadFile(filepath.Join(chartDir, "values.yaml"))
		Expect(err).NotTo(HaveOccurred())
		var values map[string]any
		Expect(yaml.Unmarshal(text, &values)).To(Succeed())
		want := map[string]string{}
		flatten("", values, want)

		text, err = os.ReadFile(filepath.Join(root, "docs", "howto-helm.md"))
		Expect(err).NotTo(HaveOccurred())
		got := map[string]string{}
		for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]*)` \\| (.+ )?\\|$").FindAllStringSubmatch(string(text), -1) {
			got[row[1]] = row[2]
		}
		Expect(cmp.Diff(want, got)).To(BeEmpty(), "- values.yaml, + the table")
	})
})

// flatten fills found with the values by their paths. An empty map or list is a value.
func flatten(path string, value any, found map[string]string) {
	fields, is := value.(map[string]any)
	if is && len(fields) > 0 {
		for key, field := range fields {
			flatten(strings.TrimPrefix(path+"."+key, "."), field, found)
		}
		return
	}
	text := fmt.Sprint(value)
	switch {
	case is:
		text = "{}"
	case value == nil:
		text = "null"
	case value == "":
		text = `""`
	}
	found[path] = text
}
