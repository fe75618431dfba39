package author

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

const (
	statusTask = `---
- name: Say how many there are
  ensign.operator.k8s_status:
    api_version: shop.myorg.tld/v1
    kind: Store
    name: "{{ ansible_operator_meta.name }}"
    namespace: "{{ ansible_operator_meta.namespace }}"
    status:
      number: 3
`
	misspelt = "apiVersion: shop.myorg.tld/v1\nkind: Store\nmetadata:\n  name: odd\nspec:\n  mesage: hello\n"
	twice    = "apiVersion: shop.myorg.tld/v1\nkind: Store\nmetadata: {name: odd}\nspec:\n  message: hello\n  message: bye\n"
	sized    = "apiVersion: shop.myorg.tld/v1\nkind: Store\nmetadata: {name: sized}\nspec: {message: hello, size: 3}\n"
)

// TestWhatAFileMayNotHave: a field that the API server drops does nothing, and nobody says so.
func TestWhatAFileMayNotHave(t *testing.T) {
	d := newDesk(t)
	d.newProject()
	scratch.Write(t, d.dir, map[string]string{"misspelt.yaml": misspelt, "twice.yaml": twice, "sized.yaml": sized})
	refuses := func() {
		t.Helper()
		d.wants(d.run(2, d.ensign, "run-once", "-f", "misspelt.yaml", "--vars"), "misspelt.yaml:6: spec.mesage: the kind Store does not have this field; did you mean message?")
		d.wants(d.run(2, d.ensign, "run-once", "-f", "twice.yaml", "--vars"), `"message" already set`)
	}
	refuses() // By the definition of the project.
	d.run(0, "make", "install")
	refuses() // By the API server's.

	const path = "config/crd/bases/shop.myorg.tld_stores.yaml"
	older, err := os.ReadFile(filepath.Join(d.dir, path))
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(older), "                message:\n", "                size:\n                  type: integer\n                message:\n", 1)
	scratch.Write(t, d.dir, map[string]string{path: newer})
	d.wants(d.run(2, d.ensign, "run-once", "-f", "sized.yaml", "--vars"), "sized.yaml:4: spec.size: the kind Store does not have this field; the project's CRD has it: install that first (make install)")

	d.run(0, "make", "install")
	d.run(0, "kubectl", "apply", "-f", "sized.yaml")
	d.wants(d.run(0, d.ensign, "run-once", "-f", "sized.yaml", "--vars"), "size: 3")
	scratch.Write(t, d.dir, map[string]string{path: string(older)})
	out := d.run(1, d.ensign, "check", "--cluster")
	d.wants(out, "config/crd/bases/shop.myorg.tld_stores.yaml:")
	d.wants(out, "error: the Store default/sized in the cluster has spec.size, which this CRD does not have [dropped-field]")
}

// TestAFileHasNoStatus: what is in the cluster has one.
func TestAFileHasNoStatus(t *testing.T) {
	d := newDesk(t)
	d.newProject()
	scratch.Write(t, d.dir, map[string]string{"roles/store/tasks/main.yml": statusTask})
	d.run(0, "make", "install")
	out := d.run(1, d.ensign, "run-once", "-f", sample)
	d.wants(out, "note: a task asked the API server for store/store-sample itself, to read it or to write its status. run-once -f does not create it.")
	d.wants(out, "(kubectl apply -n default -f "+sample+"), then give its name: run-once store/store-sample -n default")
	d.run(0, "kubectl", "apply", "-n", "default", "-f", sample)
	if out := d.run(0, d.ensign, "run-once", "store/store-sample", "-n", "default"); strings.Contains(out, "note: ") {
		t.Errorf("there is nothing to note:\n%s", out)
	}
	if number := d.run(0, "kubectl", "get", "store/store-sample", "-o", "jsonpath={.status.number}"); number != "3" {
		t.Errorf("the status has the number %q", number)
	}
}
