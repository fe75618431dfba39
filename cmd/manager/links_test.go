package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestWhatTheManagerDoesNotLink: each of these costs the image and the memory of each pod much, and
// a manager needs none of them.
func TestWhatTheManagerDoesNotLink(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	if !slices.Contains(linked, "github.com/ensign-operator/ensign/internal/controller") {
		t.Fatalf("the list of packages is no such list:\n%s", out)
	}
	for prefix, why := range map[string]string{
		"github.com/ensign-operator/ensign/internal/author":        "people's commands are in the program ensign",
		"github.com/ensign-operator/ensign/internal/cli/ensigncmd": "people's commands are in the program ensign",
		"github.com/ensign-operator/ensign/internal/chart/action":  "chart-exec carries out Helm's actions",
		"helm.sh/helm/v4/pkg/action":                               "chart-exec carries out Helm's actions",
		"helm.sh/helm/v4/pkg/engine":                               "chart-exec renders",
		"github.com/Masterminds/sprig":                             "chart-exec evaluates templates: with an engine of templates, the linker keeps each method of each type",
		"sigs.k8s.io/controller-runtime/pkg/metrics/filters":       "metricsauth does it without the API server's library",
		"google.golang.org/grpc":                                   "nothing of the manager speaks gRPC, nor needs the engine of templates behind it",
		"github.com/google/cel-go":                                 "nothing of the manager evaluates CEL",
	} {
		if i := slices.IndexFunc(linked, func(path string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }); i >= 0 {
			t.Errorf("the manager links %s: %s", linked[i], why)
		}
	}
}
