// Package compile_test runs compile.sh on a compiler that does what a test tells it.
package compile_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// build starts compile.sh with a "go" whose build is this shell script, and whose list names
// packages a, b and c as stale. It returns what the script says, as it comes.
func build(t *testing.T, script string, env ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	bin := t.TempDir()
	program := "#!/bin/sh\ncase $1 in\nlist) printf '%b' \"${STALE-x/a\\nx/b\\nx/c\\n}\" ;;\nbuild)\n" + script + "\n;;\nesac\n"
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("./compile.sh", "program", "-o", "out", "./x")
	cmd.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "DIR=" + bin}, env...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, bufio.NewReader(stderr)
}

// until reads lines until one has the text; all that was read before is in the failure.
func until(t *testing.T, said *bufio.Reader, text string) {
	t.Helper()
	var before strings.Builder
	for {
		line, err := said.ReadString('\n')
		before.WriteString(line)
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			t.Fatalf("no line has %q: %q", text, before.String())
		}
	}
}

func TestALongBuildSaysHowFarItIs(t *testing.T) {
	// Each wait of the compiler ends when the test has read what it waits for.
	cmd, said := build(t, `
		echo 'go: downloading example.org/m v1.0.0' >&2
		while [ ! -e "$DIR/1" ]; do sleep 0.1; done
		echo x/a >&2
		while [ ! -e "$DIR/2" ]; do sleep 0.1; done
		printf 'x/b\nx/c\n' >&2
		while [ ! -e "$DIR/3" ]; do sleep 0.1; done`, "EVERY=1")
	dir := strings.TrimPrefix(cmd.Env[1], "DIR=")
	for _, step := range []struct{ text, file string }{
		{"program: 1 modules downloaded after", "1"},
		{"program: 1 of 3 packages compiled after", "2"},
		{"program: 3 packages compiled, linking after", "3"},
	} {
		until(t, said, step.text)
		if err := os.WriteFile(filepath.Join(dir, step.file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rest, err := io.ReadAll(said)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, rest)
	}
}

func TestABuildThatOnlyLinksSaysSo(t *testing.T) {
	cmd, said := build(t, `while [ ! -e "$DIR/1" ]; do sleep 0.1; done`, "EVERY=1", "STALE=")
	until(t, said, "program: no package is to be compiled, linking after")
	if err := os.WriteFile(filepath.Join(strings.TrimPrefix(cmd.Env[1], "DIR="), "1"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestAShortBuildPrintsNothing(t *testing.T) {
	cmd, said := build(t, `echo x/a >&2`)
	rest, err := io.ReadAll(said)
	if err := errors.Join(err, cmd.Wait()); err != nil || len(rest) > 0 {
		t.Errorf("got %v, %q", err, rest)
	}
}

func TestAFaultIsShownAsItIsAndFails(t *testing.T) {
	cmd, said := build(t, `printf '# x/a\n./a.go:3:1: undefined: y\n' >&2; exit 1`)
	rest, err := io.ReadAll(said)
	if err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("got %v, want exit code 1", err)
	}
	if want := "# x/a\n./a.go:3:1: undefined: y\n"; string(rest) != want {
		t.Errorf("got %q, want %q", rest, want)
	}
}
