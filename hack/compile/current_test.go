package compile_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tree is a copy of what builds the control plane, with a Go that only notes that it builds.
type tree struct {
	t    *testing.T
	root string
	path string
}

const fakeGo = `#!/bin/sh
case "$1 $2" in
"env "*) echo go1.26.0 ;;
"list -m")
  case "$*" in
  *.Dir*) echo "$ROOT/kwok" ;;
  *) echo 1.37.2 ;;
  esac ;;
"build "*)
  echo built >>"$ROOT/builds"
  while [ $# -gt 0 ]; do
    case $1 in
    -o) into=$2; shift ;;
    */cmd/*|*/server/v3)
      name=${1##*/}; [ "$name" != v3 ] || name=server
      printf '#!/bin/sh\necho Kubernetes v1.37.2\n' >"$into/$name"; chmod +x "$into/$name" ;;
    esac
    shift
  done ;;
esac
`

func newTree(t *testing.T) *tree {
	t.Helper()
	made := &tree{t, t.TempDir(), ""}
	made.write("go/go", fakeGo)
	made.write("kwok/kustomize/stage/x.yaml", "")
	for _, file := range []string{"compile/compile.sh", "controlplane/build.sh", "controlplane/go.mod", "controlplane/go.sum", "controlplane/stages/kustomization.yaml", "controlplane/stages/claim-expand.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", file))
		if err != nil {
			t.Fatal(err)
		}
		made.write("hack/"+file, string(text))
	}
	return made
}

func (tree *tree) write(name, text string) {
	tree.t.Helper()
	path := filepath.Join(tree.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tree.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		tree.t.Fatal(err)
	}
}

// builds calls build.sh with the arguments, and reports whether it has compiled anything.
func (tree *tree) builds(args ...string) bool {
	tree.t.Helper()
	cmd := exec.Command(filepath.Join(tree.root, "hack/controlplane/build.sh"), args...)
	cmd.Env = []string{"ROOT=" + tree.root, "PATH=" + tree.root + "/go:" + tree.path + "/usr/bin:/bin"}
	if out, err := cmd.CombinedOutput(); err != nil {
		tree.t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(tree.root, "builds"))
	if err != nil {
		return false
	}
	tree.write("builds", "")
	return strings.Contains(string(text), "built")
}

func TestTheControlPlaneIsBuiltAnewOnlyWhereItIsNotCurrent(t *testing.T) {
	tree := newTree(t)
	if !tree.builds() || tree.builds() {
		t.Fatal("want one build at the first call, none at the second")
	}

	tree.write("theirs/kubectl", "#!/bin/sh\necho 'Client Version: v1.38.0'\n")
	tree.path = tree.root + "/theirs:"
	if tree.builds() {
		t.Error("a shell with another PATH built everything anew")
	}

	script, err := os.ReadFile(filepath.Join(tree.root, "hack/controlplane/build.sh"))
	if err != nil {
		t.Fatal(err)
	}
	tree.write("hack/controlplane/build.sh", string(script)+"# One more word.\n")
	if tree.builds() {
		t.Error("a comment built everything anew")
	}

	tree.write("hack/controlplane/build.sh", strings.Replace(string(script), "=-l'", "=-N'", 1))
	if !tree.builds() {
		t.Error("other flags of the compiler built nothing")
	}

	// The set has a link to the newer kubectl now.
	tree.path = ""
	if tree.builds() {
		t.Error("a program that was taken from elsewhere is still there, and everything was built")
	}
	tree.write("theirs/kubectl", "#!/bin/sh\necho 'Client Version: v1.30.0'\n")
	if !tree.builds() {
		t.Error("the program that was taken from elsewhere is too old now, and nothing was built")
	}

	if err := os.Remove(filepath.Join(tree.root, "bin/controlplane/etcd")); err != nil {
		t.Fatal(err)
	}
	if !tree.builds() {
		t.Error("a program is missing, and nothing was built")
	}
}

// TestAnOlderVersionIsASetOfItsOwn: what test-matrix compares must be the version that it names.
func TestAnOlderVersionIsASetOfItsOwn(t *testing.T) {
	tree := newTree(t)
	tree.write("hack/controlplane/v1.30/go.mod", "module older\n")
	tree.write("hack/controlplane/v1.30/go.sum", "")
	tree.write("theirs/kube-apiserver", "#!/bin/sh\necho 'Kubernetes v1.38.0'\n")
	if !tree.builds() {
		t.Fatal("want the set that it borrows from built")
	}
	tree.path = tree.root + "/theirs:"
	if !tree.builds("1.30") || tree.builds("1.30") {
		t.Fatal("want one build at the first call, none at the second")
	}
	for _, name := range []string{"etcd", "kwok", "stages.yaml", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"} {
		path := filepath.Join(tree.root, "bin/controlplane-1.30", name)
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
		if to, err := os.Readlink(path); err == nil && strings.Contains(to, "theirs") {
			t.Errorf("%s is another version's: %s", name, to)
		}
	}
	// Compiled once, for all versions.
	for _, name := range []string{"etcd", "kwok", "kubectl"} {
		if to, err := os.Readlink(filepath.Join(tree.root, "bin/controlplane-1.30", name)); err != nil || to != "../controlplane/"+name {
			t.Errorf("%s is not that of the newest set: %q, %v", name, to, err)
		}
	}
	cmd := exec.Command(filepath.Join(tree.root, "hack/controlplane/build.sh"), "1.29")
	cmd.Env = []string{"PATH=" + tree.root + "/go:/usr/bin:/bin"}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "there are: 1.30") {
		t.Errorf("an unknown version: %v, %s", err, out)
	}
}
