package rendering

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// random matches what is another text each time.
var random = regexp.MustCompile(`[A-Za-z0-9+/=]{40,}`)

func TestAChartIsRenderedAsHelmDoes(t *testing.T) {
	if len(charts) < 40 {
		t.Errorf("there are %d charts", len(charts))
	}
	for construct, chart := range charts {
		t.Run(construct, func(t *testing.T) {
			t.Parallel()
			dir := written(t, chart.files)
			want := random.ReplaceAllString(helm(t, dir, chart.values), "RANDOM")
			got := random.ReplaceAllString(rendered(t, dir, chart.values), "RANDOM")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-helm +chart-exec):\n%s", diff)
			}
			if want == "" {
				t.Error("nothing is rendered")
			}
		})
	}
}

// TestAWholeNumberStaysWhole: Helm reads values as YAML, where each number is a float, and prints that.
func TestAWholeNumberStaysWhole(t *testing.T) {
	dir := written(t, data("  a: \"{{ .Values.size }}\""))
	const want, helms = `a: "1000000"`, `a: "1e+06"`
	values := map[string]any{"size": 1000000}
	if got, of := rendered(t, dir, values), helm(t, dir, values); !strings.Contains(got, want) || !strings.Contains(of, helms) {
		t.Errorf("got %s, and by Helm %s", got, of)
	}
}

func written(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{"Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\nappVersion: \"1e3\"\n"})
	scratch.Write(t, dir, files)
	return dir
}

// helm returns what helm template prints.
func helm(t *testing.T, dir string, values map[string]any) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.json")
	write(t, file, values)
	return run(t, "tools/helm", "template", "sample", dir, "--namespace", "sample", "--values", file)
}

// rendered returns what chart-exec renders, in the order and the words of helm template.
func rendered(t *testing.T, dir string, values map[string]any) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "order.json")
	write(t, file, order.Order{Action: order.Render, Chart: dir, Name: "sample", Namespace: "sample", Values: maps.Clone(values)})
	files, decoder := map[string]string{}, json.NewDecoder(strings.NewReader(run(t, "chart-exec", file)))
	for {
		var one order.File
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		files[one.Name] = one.Text
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, one := range manifests {
		fmt.Fprintf(&all, "---\n# Source: %s\n%s\n", one.Name, one.Content)
	}
	objects := strings.TrimSpace(all.String()) + "\n" // As helm prints a manifest.
	all.Reset()
	for _, one := range hooks {
		fmt.Fprintf(&all, "---\n# Source: %s\n%s\n", one.Path, one.Manifest)
	}
	return objects + all.String()
}

func write(t *testing.T, file string, value any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run returns what a program prints, which make test builds.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join("..", "..", "bin", program), args...)
	var warnings strings.Builder
	home := t.TempDir()
	cmd.Env, cmd.Stderr = []string{"HOME=" + home, "TMPDIR=" + home}, &warnings
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", program, err, warnings.String())
	}
	return string(out)
}
