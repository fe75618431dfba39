// Package scale has the bench measure one manager of many custom resources, at a small size: what it
// counts, requests and objects, is not more than its goals, whatever the machine.
package scale

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

func TestAManagerOfManyResources(t *testing.T) {
	root := scratch.Repository(t)
	bench := filepath.Join(t.TempDir(), "bench")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bench, "./hack/bench")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var result, progress bytes.Buffer
	measure := exec.CommandContext(t.Context(), bench, "--parts=scale", "--scale=120", "--scale-runs=20", "--rest=1s", "--strict", "--json")
	measure.Dir, measure.Stdout, measure.Stderr, measure.Env = root, &result, &progress, append(os.Environ(), "TMPDIR=/tmp") // Short: sockets are below it.
	if err := measure.Run(); err != nil {
		t.Fatalf("%v: %s\n%s", err, &progress, &result)
	}
	var got report.Report
	if err := json.Unmarshal(result.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"created at once, until the last result", "changed at once, until the last result", "from a start until all are known to be up to date",
		"at rest, memory of the manager (RSS)", "the most memory (RSS) that the manager ever had", "objects in etcd beside each resource",
	} {
		rows := slices.DeleteFunc(slices.Clone(got.Rows), func(r report.Row) bool { return r.Name != name })
		if len(rows) != 2 || rows[0].Value <= 0 || rows[1].Value <= 0 {
			t.Errorf("%s: want a figure of a function of Go and one of a role, got %+v", name, rows)
		}
	}
}
