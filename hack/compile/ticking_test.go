package compile_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestASilentCommandTicks(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", `source ../steps.sh
		silent() { while [[ ! -e $DIR/1 ]]; do sleep 0.1; done; return 7; }
		ticking "x: 1/3" silent || echo "ended with $?" >&2`)
	cmd.Env = append(os.Environ(), "DIR="+dir, "EVERY=1")
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	said := bufio.NewReader(pipe)
	until(t, said, "x: 1/3: still at it after")
	if err := os.WriteFile(filepath.Join(dir, "1"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	until(t, said, "ended with 7")
	if rest, err := io.ReadAll(said); err != nil || len(rest) > 0 {
		t.Errorf("got %q, %v after the end", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
