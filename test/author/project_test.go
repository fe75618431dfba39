//go:build long

package author

import "testing"

// TestTheProjectPassesItsOwnTests takes about two minutes: both linters, and Molecule.
func TestTheProjectPassesItsOwnTests(t *testing.T) {
	d := newDesk(t)
	d.newProject()
	d.run(0, d.manager, "create", "api", "--group", "shop", "--version", "v1alpha1", "--kind", "PriceList", "--generate-playbook", "--finalizer")
	d.run(0, d.manager, "create", "api", "--group", "shop", "--version", "v1", "--kind", "Region", "--generate-role", "--namespaced=false")
	d.run(0, "kubectl", "kustomize", "config/default")
	d.wants(d.run(0, "make", "test"), "Molecule")
	d.run(0, "kubectl", "apply", "-k", "config/default")
	d.run(0, "kubectl", "apply", "--dry-run=server", "-k", "config/samples")
}
