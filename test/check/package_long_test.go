//go:build long

package check

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/author/check"
	"github.com/ensign-operator/ensign/internal/author/report"
)

// wheel has about a hundred collections; requirements-collections.txt pins it by its hash.
const wheel = "ansible-14.5.0-py3-none-any.whl"

// TestNoErrorInTheRolesOfTheAnsiblePackage checks all roles of all collections of the package,
// and knows the few errors that are true.
func TestNoErrorInTheRolesOfTheAnsiblePackage(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(root, ".dev", "check")
	tool(t, root, "pip", "download", "--quiet", "--no-deps", "--require-hashes", "-r", "requirements-collections.txt", "-d", cache)
	dir := t.TempDir()
	tool(t, root, "python", "-m", "zipfile", "-e", filepath.Join(cache, wheel), dir)
	roles, err := filepath.Glob(filepath.Join(dir, "ansible_collections", "*", "*", "roles", "*", "tasks"))
	if err != nil || len(roles) < 100 {
		t.Fatalf("found %d roles, %v", len(roles), err)
	}
	var text strings.Builder
	for n, role := range roles {
		parts := strings.Split(role, string(filepath.Separator))
		parts = parts[len(parts)-5:]
		fmt.Fprintf(&text, "- {group: roles.example.com, version: v1, kind: Role%d, role: %s.%s.%s}\n", n, parts[0], parts[1], parts[3])
	}
	if err := os.WriteFile(filepath.Join(dir, "watches.yaml"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options(t, dir)
	o.AnsibleCollectionsPath = dir
	r, err := check.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d roles, %d files, %d tasks; %d errors, %d warnings, %d info", len(roles), r.Files, r.Tasks, r.Count(report.Error), r.Count(report.Warning), r.Count(report.Info))
	if r.Tasks < 2000 {
		t.Errorf("only %d tasks were read", r.Tasks)
	}
	got := map[string]bool{}
	for _, f := range r.Relative(dir).Findings {
		if f.Severity == report.Error {
			got[strings.TrimPrefix(f.Place(), "ansible_collections/")+" "+f.ID] = true
		}
	}
	if diff := cmp.Diff(trueErrors, got); diff != "" {
		t.Errorf("errors (-known +found):\n%s", diff)
	}
}

// trueErrors are faults that the package has: each fails as soon as a run gets there.
var trueErrors = map[string]bool{
	// A text that begins with ' and ends with ".
	"community/zabbix/roles/zabbix_agent/tasks/api.yml:23:7 jinja": true,
	// A loop over what regex_replace makes of a list: a text.
	"grafana/grafana/roles/grafana/tasks/dashboards.yml:192:17 native-type": true,
	// A loop over a list with a space behind it: a text.
	"ovirt/ovirt/roles/vm_infra/tasks/rename_resize_boot_disk.yml:15:9 native-type": true,
	// until is a list.
	"ovirt/ovirt/roles/hosted_engine_setup/tasks/create_target_vm/03_hosted_engine_final_tasks.yml:24:14 non-boolean-condition": true,
}

func tool(t *testing.T, dir string, name string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}
