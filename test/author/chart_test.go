package author

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// front is a chart with what asks an operator for rights: roles of its own, one of them aggregating
// others, bindings of roles of others, a lookup, a definition with an object of it, and a hook. Its
// schema is larger than an annotation may be, in which kubectl apply keeps what it has applied.
func front() map[string]string {
	return map[string]string{
		"front/Chart.yaml":         "apiVersion: v2\nname: front\nversion: 1.2.3\n",
		"front/values.yaml":        "# Who is greeted.\nwho: all\n",
		"front/values.schema.json": `{"type": "object", "properties": {"who": {"type": "string", "description": "` + strings.Repeat("Who is greeted. ", 20_000) + `"}}}`,
		"front/crds/menu.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: menuses.front.example.com}\nspec:\n  group: front.example.com\n  scope: Namespaced\n" +
			"  names: {kind: Menus, plural: menuses}\n  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]\n",
		"front/templates/all.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data:
  text: "Hello {{ .Values.who }}"
  nodes: "{{ with lookup "v1" "Node" "" "" }}{{ len .items }}{{ end }}"
---
apiVersion: front.example.com/v1
kind: Menus
metadata: {name: {{ .Release.Name }}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Release.Name }}}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-hook, annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: "before-hook-creation,hook-succeeded"}}
`,
		"front/templates/rbac.yaml": `
{{- define "front.binding" }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: {{ index . 1 }}, name: {{ index . 2 }}}
subjects: [{kind: ServiceAccount, name: {{ (index . 0).Release.Name }}, namespace: {{ (index . 0).Release.Namespace }}}]
{{- end }}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: {{ .Release.Name }}}
rules:
- {apiGroups: [""], resources: [endpoints, pods/log], verbs: [get], resourceNames: [{{ .Release.Name }}]}
- {apiGroups: [policy], resources: [podsecuritypolicies], verbs: [use]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: {{ .Release.Name }}}
{{- include "front.binding" (list . "Role" .Release.Name) }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: {{ .Release.Name }}-view}
{{- include "front.binding" (list . "ClusterRole" "view") }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: {{ .Release.Name }}-part, labels: {front.example.com/part: "yes"}}
rules:
- {apiGroups: [storage.k8s.io], resources: [storageclasses], verbs: ["*"]}
- {nonResourceURLs: [/metrics, /healthz/*], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: {{ .Release.Name }}-all}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {front.example.com/part: "yes"}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: {{ .Release.Name }}-all}
{{- include "front.binding" (list . "ClusterRole" (printf "%s-all" .Release.Name)) }}
`,
	}
}

// showsValues has run-once show what the chart front would get, and run nothing.
func (d *desk) showsValues() {
	d.t.Helper()
	const sample = "config/samples/demo_v1alpha1_front.yaml"
	d.wants(d.run(2, d.ensign, "run-once", "-f", sample, "--check"), "make run starts one here. ensign diff shows what it would change")
	d.run(0, "cp", "watches.yaml", "watches.before")
	d.run(0, "sed", "-i", `s|^  chart: charts/front$|&\n  overrideValues: {place: '{{ upper "here" }}'}|`, "watches.yaml")
	for _, kubeconfig := range []string{"none", ""} {
		out := d.run(0, "bash", "-c", "export KUBECONFIG=${1:-$KUBECONFIG} && $ENSIGN run-once --vars -f "+sample, "", kubeconfig)
		d.wants(out, "place: HERE\nwho: all\n")
	}
	d.run(0, "sed", "-i", "s|^  overrideValues: .*|  valuesFrom: [{kind: Secret, name: words}]|", "watches.yaml")
	d.wants(d.run(2, "bash", "-c", "KUBECONFIG=none $ENSIGN run-once --vars -f "+sample), "valuesFrom: its objects are in the cluster")
	d.wants(d.run(2, d.ensign, "run-once", "--vars", "-f", sample), `valuesFrom: Secret "words" not found`)
	d.run(0, "kubectl", "create", "secret", "generic", "words", "--from-literal=values.yaml=text: fromSecret")
	out := d.run(0, d.ensign, "run-once", "--vars", "-f", sample)
	if d.wants(out, "text: "); strings.Contains(out, "fromSecret") {
		d.t.Errorf("a value of a Secret is shown:\n%s", out)
	}
	d.run(0, "kubectl", "delete", "secret", "words")
	d.run(0, "mv", "watches.before", "watches.yaml")
}

// repository serves a repository with the chart, and returns its URL.
func (d *desk) repository(chart map[string]string) string {
	d.t.Helper()
	dir := filepath.Join(filepath.Dir(d.dir), "repository")
	scratch.Write(d.t, dir, chart)
	helm := filepath.Join(scratch.Repository(d.t), "bin", "tools", "helm")
	d.run(0, helm, "package", filepath.Join(dir, "front"), "--destination", dir)
	d.run(0, helm, "repo", "index", dir)
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	d.t.Cleanup(server.Close)
	return server.URL
}

// TestAChartBecomesAnOperator goes the way from a chart of a repository to an operator that runs with
// the account of the project: the rights that init and create api tell suffice.
func TestAChartBecomesAnOperator(t *testing.T) {
	d := newDesk(t)
	out := d.run(0, d.ensign, "init", "--domain", "myorg.tld", "--api-version", "demo.myorg.tld/v1alpha1", "--kind", "front", "--helm-chart", "front", "--helm-chart-repo", d.repository(front()))
	d.wants(out, "the chart front 1.2.3 is copied to charts/front")
	d.wants(out, "aggregates others, so that the operator may give any right")
	hello := filepath.Join(scratch.Repository(t), "examples", "hello", "charts", "hello")
	out = d.run(0, d.ensign, "create", "api", "--group", "demo", "--version", "v1", "--kind", "Hello", "--chart", hello)
	d.wants(out, "4 of its objects")
	d.wants(out, "hello/templates/ingress.yaml")
	d.wants(d.run(0, d.ensign, "check"), "0 errors")
	d.rightsFit()
	out = d.run(1, d.ensign, "check", "--cluster")
	d.wants(out, "watches.yaml:11:1: error: the cluster does not serve the kind Hello.demo.myorg.tld [not-served]")
	d.wants(out, "whether the namespace shop-system takes the operator's pod is not known")
	d.run(0, "make", "install")
	d.showsValues()
	d.run(0, "kubectl", "apply", "--server-side", "-k", "config/default")
	d.checksTheCluster()
	account := d.account("shop-system", "shop-manager")

	d.start(filepath.Join(filepath.Dir(d.ensign), "manager"), "run", "--kubeconfig="+account, "--metrics-bind-address=0", "--health-probe-bind-address=0", "--user-metrics-bind-address=0")
	d.run(0, "kubectl", "apply", "-k", "config/samples")
	d.run(0, "kubectl", "wait", "--for=condition=Successful", "hello/hello-sample", "front/front-sample", late)
	if owner := d.run(0, "kubectl", "get", "deployment", "hello-sample-hello", "-o", "jsonpath={.metadata.ownerReferences[0].kind}"); owner != "Hello" {
		t.Errorf("the Deployment's owner is %q", owner)
	}
	d.run(0, "kubectl", "patch", "front/front-sample", "--type=merge", "-p", `{"spec": {"who": "each"}}`)
	d.run(0, "kubectl", "wait", "--for=jsonpath={.data.text}=Hello each", "configmap/front-sample", late)
	d.run(0, "kubectl", "wait", "--for=condition=Successful", "front/front-sample", late)
	d.run(0, "kubectl", "delete", "-k", "config/samples", late)
	const kinds = "configmaps,secrets,serviceaccounts,menuses.front.example.com,roles,rolebindings,clusterroles,clusterrolebindings"
	if left := d.run(0, "bash", "-c", "kubectl get "+kinds+" -o name | grep front-sample || true"); strings.TrimSpace(left) != "" {
		t.Errorf("left behind: %s", left)
	}
}
