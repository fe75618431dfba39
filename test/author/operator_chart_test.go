package author

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/harness/manifests"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// TestWhatInstallsTheOperatorIsRendered by the real helm and kubectl: the chart that init writes, the
// overlay for runs in Jobs, the ServiceMonitor and the NetworkPolicy.
func TestWhatInstallsTheOperatorIsRendered(t *testing.T) {
	root, d := scratch.Repository(t), &desk{t: t, dir: filepath.Join(t.TempDir(), "shop")}
	d.ensign = filepath.Join(root, "bin", "ensign")
	d.env = append(os.Environ(), "KUBECONFIG=", "PATH="+filepath.Join(root, "bin", "controlplane")+":"+os.Getenv("PATH"))
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d.run(0, d.ensign, "init", "--domain", "myorg.tld")
	d.run(0, d.ensign, "create", "api", "--group", "shop", "--version", "v1", "--kind", "Store", "--generate-role", "--finalizer")
	for name, try := range map[string]func(*testing.T, *desk){
		"helm's linter passes the chart": func(_ *testing.T, d *desk) {
			d.wants(d.helm(0, "lint", "--strict", "config/chart"), "1 chart(s) linted, 0 chart(s) failed")
		},
		"the chart makes the objects of config":     chartIsConfig,
		"each documented value changes the objects": valuesChangeObjects,
		"labels, ports and names fit together":      partsFit,
	} {
		t.Run(name, func(t *testing.T) { try(t, d.in(t)) })
	}
}

// in is the desk in a part of a test.
func (d *desk) in(t *testing.T) *desk {
	of := *d
	of.t = t
	return &of
}

func (d *desk) helm(code int, args ...string) string {
	d.t.Helper()
	return d.run(code, filepath.Join(scratch.Repository(d.t), "bin", "tools", "helm"), args...)
}

// rendered returns the objects of the chart, those of hooks too if there are further arguments for that.
func (d *desk) rendered(args ...string) string {
	d.t.Helper()
	text := d.helm(0, append([]string{"template", "shop", "config/chart", "--namespace=shop-system"}, args...)...)
	at := strings.Index(text, "---\n") // Helm says first which links it follows.
	return text[max(at, 0):]
}

func (d *desk) parse(text string) manifests.Objects {
	d.t.Helper()
	objects, err := manifests.Parse(text)
	if err != nil {
		d.t.Fatal(err)
	}
	return objects
}

// kustomized returns the objects of directories of config/.
func (d *desk) kustomized(dirs ...string) manifests.Objects {
	d.t.Helper()
	text := ""
	for _, dir := range dirs {
		text += "\n---\n" + d.run(0, "kubectl", "kustomize", "config/"+dir)
	}
	return d.parse(text)
}

func chartIsConfig(t *testing.T, d *desk) {
	for set, dirs := range map[string][]string{
		"": {"default"}, "jobs.enabled=true": {"overlays/jobs"},
		"metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true,networkPolicy.enabled=true": {"default", "prometheus", "network-policy"},
	} {
		want, got := d.kustomized(dirs...), d.parse(d.rendered("--no-hooks", "--set="+set))
		if diff := cmp.Diff(want, got); diff != "" || len(want) < 10 {
			t.Errorf("%q: %d objects (-config +chart):\n%s", set, len(want), diff)
		}
	}
}

// values are values for each row of docs/howto-helm.md: what is set before, and what then makes a difference.
var values = map[string][2]string{
	"image.repository": {``, `"registry.example/shop"`}, "image.tag": {``, `"1.2"`}, "image.digest": {``, `"sha256:` + strings.Repeat("ab", 32) + `"`},
	"image.pullPolicy": {``, `"Always"`}, "image.pullSecrets": {``, `["one"]`}, "replicas": {``, `2`}, "shards": {``, `2`}, "jobs.enabled": {``, `true`},
	"leaderElection.enabled": {``, `false`}, "watchNamespaces": {``, `["a"]`}, "logFormat": {``, `"json"`}, "warm": {``, `false`},
	"maxConcurrentRuns": {``, `7`}, "maxConcurrentReconciles": {``, `5`}, "gathering": {``, `"implicit"`}, "extraArgs": {``, `["--max-backoff=1m"]`},
	"extraEnv": {``, `[{"name":"A","value":"b"}]`}, "extraVolumes": {``, `[{"name":"v","emptyDir":{}}]`}, "extraVolumeMounts": {``, `[{"name":"v","mountPath":"/v"}]`},
	"resources.requests.cpu": {``, `"1"`}, "resources.requests.memory": {``, `"1Gi"`}, "resources.limits.memory": {``, `"3Gi"`}, "tmpSizeLimit": {``, `"3Gi"`},
	"podAnnotations": {``, `{"a":"b"}`}, "podLabels": {``, `{"a":"b"}`}, "priorityClassName": {``, `"high"`}, "nodeSelector": {``, `{"a":"b"}`}, "tolerations": {``, `[{"key":"a"}]`}, "affinity": {``, `{"nodeAffinity":{}}`},
	"topologySpreadConstraints":  {`replicas=2`, `[{"maxSkew":2,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"}]`},
	"serviceAccount.annotations": {``, `{"a":"b"}`}, "crds.enabled": {``, `false`}, "userRoles.enabled": {``, `false`}, "metrics.enabled": {``, `false`},
	"metrics.serviceMonitor.enabled": {``, `true`}, "metrics.serviceMonitor.labels": {`metrics.serviceMonitor.enabled=true`, `{"a":"b"}`},
	"metrics.serviceMonitor.interval": {`metrics.serviceMonitor.enabled=true`, `"15s"`}, "metrics.prometheusRule.enabled": {``, `true`},
	"metrics.prometheusRule.labels": {`metrics.prometheusRule.enabled=true`, `{"a":"b"}`}, "networkPolicy.enabled": {``, `true`},
	"networkPolicy.egress": {`networkPolicy.enabled=true`, `[]`}, "podDisruptionBudget.maxUnavailable": {`replicas=2`, `"50%"`}, "uninstallCheck.enabled": {``, `false`},
}

func valuesChangeObjects(t *testing.T, d *desk) {
	page, err := os.ReadFile(filepath.Join(scratch.Repository(t), "docs", "howto-helm.md"))
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([\\w.]+)` \\| `").FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, row[1])
	}
	slices.Sort(documented)
	if diff := cmp.Diff(documented, slices.Sorted(maps.Keys(values))); diff != "" {
		t.Fatalf("-docs/howto-helm.md +this test:\n%s", diff)
	}
	before := map[string]string{}
	for name, value := range values {
		base := value[0]
		if before[base] == "" {
			before[base] = d.rendered("--set=" + base)
		}
		after := d.rendered("--set="+base, "--set-json="+name+"="+value[1])
		if len(d.parse(after)) < 8 || after == before[base] {
			t.Errorf("%s=%s changes nothing, or is all that is left:\n%s", name, value[1], after)
		}
	}
}

// at returns what is at a path of an object.
func at(object any, path ...any) any {
	for _, key := range path {
		switch of := object.(type) {
		case map[string]any:
			object = of[fmt.Sprint(key)]
		case []any:
			i, ok := key.(int)
			if !ok || i >= len(of) {
				return nil
			}
			object = of[i]
		default:
			return nil
		}
	}
	return object
}

// partsFit follows what one object says of another, by which the cluster finds it.
func partsFit(t *testing.T, d *desk) {
	objects := d.kustomized("overlays/jobs", "prometheus", "network-policy")
	deployment := objects["Deployment shop-system/shop-manager"]
	pod := at(deployment, "spec", "template", "metadata", "labels")
	service := objects["Service shop-system/shop-metrics"]
	selects := func(selector, labels any) bool {
		wanted, _ := selector.(map[string]any)
		have, _ := labels.(map[string]any)
		for key, value := range wanted {
			if have[key] != value {
				return false
			}
		}
		return len(wanted) > 0
	}
	for what, fits := range map[string]bool{
		"the Deployment has its pods":                selects(at(deployment, "spec", "selector", "matchLabels"), pod),
		"the metrics' Service finds the pods":        selects(at(service, "spec", "selector"), pod),
		"the agents' Service finds the pods":         selects(at(objects["Service shop-system/shop-jobs"], "spec", "selector"), pod),
		"the ServiceMonitor finds the Service":       selects(at(objects["ServiceMonitor shop-system/shop-manager"], "spec", "selector", "matchLabels"), at(service, "metadata", "labels")),
		"and its port":                               at(objects["ServiceMonitor shop-system/shop-manager"], "spec", "endpoints", 0, "port") == at(service, "spec", "ports", 0, "name"),
		"Prometheus may read the metrics":            objects["ClusterRole <nil>/shop-metrics-reader"] != nil,
		"the NetworkPolicy is for the pods":          false,
		"the manager tells agents the right name":    strings.Contains(fmt.Sprint(at(deployment, "spec", "template", "spec", "containers", 0, "args")), "--job-address=shop-jobs.shop-system.svc:8445"),
		"the alerts are of the operator's namespace": objects["PrometheusRule shop-system/shop-manager"] != nil,
	} {
		for name, object := range objects {
			if what == "the NetworkPolicy is for the pods" && strings.HasPrefix(name, "NetworkPolicy shop-system/") {
				fits = selects(at(object, "spec", "podSelector", "matchLabels"), pod)
			}
		}
		if !fits {
			text, _ := yaml.Marshal(objects)
			t.Errorf("%s: no; there are %v\n%s", what, slices.Sorted(maps.Keys(objects)), text)
		}
	}
}
