// Package node_test runs the scripts of this folder where they must refuse.
package node_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestAProjectThatCannotBeLoadedSaysWhy(t *testing.T) {
	project := t.TempDir()
	if err := os.WriteFile(filepath.Join(project, "Dockerfile"), []byte("FROM ensign-base\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no directory":  {nil, "name the directory of an operator's project"},
		"no Dockerfile": {[]string{t.TempDir()}, "has no Dockerfile"},
		"no node is up": {[]string{project}, "the node is not up: make node-up"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("./image.sh", append([]string{"project"}, test.args...)...)
			cmd.Env = append(os.Environ(), "NODE_WORK="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), test.want) {
				t.Errorf("got %v, %q; want %q", err, out, test.want)
			}
		})
	}
}
