package author

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// TestTheDockerfileOfAChart runs what the Dockerfile runs, without an engine, where ADD would have put
// the chart; hack/image/test.sh builds it. The manager takes the watches that the arguments make: it
// goes on to look for a cluster.
func TestTheDockerfileOfAChart(t *testing.T) {
	root := scratch.Repository(t)
	text, err := os.ReadFile(filepath.Join(root, "hack", "image", "chart.Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(text), "\nRUN ")
	script, _, _ = strings.Cut(strings.ReplaceAll(script, "\\\n", ""), "\n")
	hello := filepath.Join(root, "examples", "hello", "charts", "hello")
	for why, test := range map[string]struct {
		place, version, kind string // where the chart is, below charts/chart
		code                 int
		want                 string
	}{
		"a directory":          {"", "demo.example.com/v1", "Hello", 0, "- group: \"demo.example.com\"\n  version: \"v1\"\n  kind: \"Hello\"\n  chart: \"charts/chart\"\n"},
		"an archive":           {"hello", "demo.example.com/v1alpha1", "Hello", 0, "chart: \"charts/chart/hello\"\n"},
		"a fetched archive":    {"hello-0.1.0.tgz", "demo.example.com/v1", "Hello", 0, "chart: \"charts/chart/hello-0.1.0.tgz\"\n"},
		"a version alone":      {"", "v1", "Hello", 1, "give a group and a version"},
		"nothing":              {"", "", "Hello", 1, "API_VERSION=''"},
		"no kind":              {"", "demo.example.com/v1", "", 1, "KIND is missing"},
		"not the chart itself": {"a/hello", "demo.example.com/v1", "Hello", 1, "HELM_CHART is not a chart"},
	} {
		t.Run(why, func(t *testing.T) {
			d := &desk{t: t, dir: t.TempDir(), env: append(os.Environ(), "KUBECONFIG=", "KUBERNETES_SERVICE_HOST=", "API_VERSION="+test.version, "KIND="+test.kind)}
			d.env = append(d.env, "HOME="+d.dir)
			to := filepath.Join(d.dir, "charts", "chart", test.place)
			if strings.HasSuffix(test.place, ".tgz") {
				d.run(0, filepath.Join(root, "bin", "tools", "helm"), "package", hello, "--destination", filepath.Dir(to))
			} else if err := os.CopyFS(to, os.DirFS(hello)); err != nil {
				t.Fatal(err)
			}
			out := d.run(test.code, "sh", "-c", script)
			if test.code == 0 {
				out = d.run(0, "cat", "watches.yaml")
				d.wants(d.run(1, filepath.Join(root, "bin", "manager"), "run", "--watches-file=./watches.yaml"), "kubeconfig")
			}
			d.wants(out, test.want)
		})
	}
}
