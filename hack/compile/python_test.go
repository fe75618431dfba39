package compile_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakePython makes "environments" of itself, and notes that it does.
const fakePython = `#!/bin/sh
case "$*" in
*"-m venv "*)
  echo made >>"$ROOT/made"
  for last; do :; done
  mkdir -p "$last/bin"
  cp "$0" "$last/bin/python"
  for name in ansible-runner ansible-doc molecule; do printf '#!/bin/sh\n' >"$last/bin/$name"; chmod +x "$last/bin/$name"; done ;;
--version) echo Python 3.13.0 ;;
esac
`

func TestAnsibleIsInstalledAnewOnlyWhereItIsNotCurrent(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := ""
	for _, name := range []string{"python.sh", "steps.sh"} {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		write("hack/"+name, string(text))
		if name == "python.sh" {
			script = string(text)
		}
	}
	for _, name := range []string{"requirements.txt", "requirements-dev.txt", "requirements-collections.txt", "requirements.yml", ".python-version", "hack/python/install_collections.py"} {
		write(name, name+"\n")
	}
	write("bin/python3", fakePython)
	makes := func() bool {
		t.Helper()
		cmd := exec.Command(filepath.Join(root, "hack/python.sh"))
		cmd.Env = []string{"ROOT=" + root, "HOME=" + root, "PYENV_ROOT=" + root, "PATH=" + root + "/bin:/usr/bin:/bin", "PYTHON=" + root + "/bin/python3"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		text, err := os.ReadFile(filepath.Join(root, "made"))
		write("made", "")
		return err == nil && len(text) > 0
	}
	if !makes() || makes() {
		t.Fatal("want one installation at the first call, none at the second")
	}
	write("hack/python.sh", script+"# One more word.\n")
	if makes() {
		t.Error("a comment installed everything anew")
	}
	write("hack/python.sh", strings.Replace(script, "--no-deps", "--no-deps --compile", 1))
	if !makes() {
		t.Error("another way to install installed nothing")
	}
	write("requirements.txt", "another\n")
	if !makes() {
		t.Error("another pin installed nothing")
	}
}
