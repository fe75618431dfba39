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

func TestAnImageIsNotBuiltWithoutANode(t *testing.T) {
	for _, image := range []string{"mysql", "mariadb", "product", "fixture", "generated", "hybrid", "visitors", "etcd"} {
		cmd := exec.Command("./image.sh", image)
		cmd.Env = append(os.Environ(), "NODE_WORK="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err == nil || string(out) != "node: the node is not up: make node-up\n" {
			t.Errorf("%s: got %v, %q", image, err, out)
		}
	}
}

func TestANetworkThatIsNoneIsNamed(t *testing.T) {
	for _, network := range []string{"10.250.0.0/24", "10.250", "10.250.0.1", "somewhere"} {
		cmd := exec.Command("./node.sh", "kubeconfig")
		cmd.Env = append(os.Environ(), "NODE_WORK="+t.TempDir(), "NODE_NET="+network)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "NODE_NET is "+network) || !strings.Contains(string(out), "such as 10.250.0") {
			t.Errorf("got %v, %q", err, out)
		}
	}
}

func TestABuildOfAnImageSaysWhichStepItIsAt(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", `source ../image/builder.sh
		{ echo 'STEP 2/9: RUN make world'; echo 'output of make'; while [[ ! -e $DIR/seen ]]; do sleep 0.1; done; } |
			image_follow shop:dev "$DIR/log" 2> >(while read -r line; do echo "$line"; touch "$DIR/seen"; done)`)
	cmd.Env = append(os.Environ(), "DIR="+dir, "EVERY=1", "HOME="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "image: shop:dev after ") || !strings.Contains(string(out), "STEP 2/9: RUN make world") {
		t.Errorf("got %v, %q", err, out)
	}
	if log, err := os.ReadFile(filepath.Join(dir, "log")); err != nil || string(log) != "STEP 2/9: RUN make world\noutput of make\n" {
		t.Errorf("the log has %q (error %v)", log, err)
	}
}
