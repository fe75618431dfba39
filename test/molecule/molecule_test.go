//go:build long

// Package molecule runs the content's Molecule scenario on a control plane of
// its own. It takes about three minutes and needs .venv and bin/controlplane.
package molecule

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ensign-operator/ensign/test/controlplane"
)

func TestScenario(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := controlplane.Start(t.Context(), controlplane.Options{Bin: filepath.Join(root, "bin", "controlplane"), Log: os.Stdout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	programs := filepath.Join(root, ".venv", "bin")
	command := exec.CommandContext(t.Context(), filepath.Join(programs, "molecule"), "test")
	command.Dir = root
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	command.Stdout, command.Stderr = os.Stdout, os.Stdout
	if err := command.Run(); err != nil {
		t.Errorf("molecule test: %v", err)
	}
}
