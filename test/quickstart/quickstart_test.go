// Package quickstart executes docs/quickstart.md, docs/tutorial.md and docs/tutorial-mysql.md as
// their readers do: block by block, in some terminals, with a real cluster, manager, Ansible and
// database server. What a page says is printed has to be.
package quickstart

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega/gbytes"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// waitTimeout ends blocks that hang.
const waitTimeout = scratch.WaitTimeout

// deadline matches what the pages tell commands to wait for at most: a reader who watches wants to
// know early that something is wrong.
var deadline = regexp.MustCompile(`--timeout=\d+s`)

// block is what a reader pastes into a terminal at once.
type block struct {
	terminal string
	code     string
	prints   []string // lines that have to stand in its output
}

var (
	terminalHeading = regexp.MustCompile(`^(?:## |<!-- )Terminal (\d)`)
	fenceStart      = regexp.MustCompile("^```([a-z]*)$")
)

// blocksOf returns the blocks marked sh of the page, each with the lines of the block marked
// text that follows it.
func blocksOf(page string) []block {
	var blocks []block
	terminal, language := "", "none"
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		last := len(blocks) - 1
		switch fence, heading := fenceStart.FindStringSubmatch(line), terminalHeading.FindStringSubmatch(line); {
		case line == "```" && language != "none":
			language = "none"
		case language == "sh":
			blocks[last].code += line + "\n"
		case language == "text":
			blocks[last].prints = append(blocks[last].prints, line)
		case fence != nil:
			if language = fence[1]; language == "sh" {
				blocks = append(blocks, block{terminal: terminal})
			}
		case heading != nil:
			terminal = heading[1]
		}
	}
	return blocks
}

// terminal is a shell that stays open between blocks, and ends at the first command that fails.
type terminal struct {
	shell  *exec.Cmd
	input  io.Writer
	output *gbytes.Buffer
	ended  chan struct{}
}

func (w *terminal) printed() string { return string(w.output.Contents()) }

func open(t *testing.T, dir string, env []string) *terminal {
	t.Helper()
	w := &terminal{shell: exec.CommandContext(context.Background(), "bash", "-euo", "pipefail"), output: gbytes.NewBuffer(), ended: make(chan struct{})}
	w.shell.Dir, w.shell.Env = dir, env
	w.shell.Stdout, w.shell.Stderr = w.output, w.output
	w.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := w.shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.input = input
	if err := w.shell.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.ended)
		_ = w.shell.Wait() // The output says how it ended.
	}()
	t.Cleanup(func() {
		_ = input.Close()
		w.interrupt(t)
	})
	return w
}

// interrupt is Ctrl-C. What does not end by that is killed.
func (w *terminal) interrupt(t *testing.T) {
	t.Helper()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		_ = syscall.Kill(-w.shell.Process.Pid, signal) // It may have ended.
		select {
		case <-w.ended:
			return
		case <-time.After(waitTimeout):
			t.Errorf("%s does not end what runs in a terminal, which printed\n%s", signal, w.printed())
		}
	}
}

// paste executes a block and waits for its end, or for what it prints where it goes on.
func (w *terminal) paste(t *testing.T, b block, goesOn bool) {
	t.Helper()
	before := len(w.printed())
	file := filepath.Join(t.TempDir(), "block")
	if err := os.WriteFile(file, []byte(b.code), 0o600); err != nil {
		t.Fatal(err)
	}
	// The shell reads its commands from its input, which those of the block must not read.
	if _, err := fmt.Fprintf(w.input, "source %s </dev/null; echo 'end of the block'\n", file); err != nil {
		t.Fatalf("the terminal has ended: %v\n%s", err, w.printed())
	}
	if goesOn && len(b.prints) == 0 {
		t.Fatalf("the page does not say when a reader can go on after\n%s", b.code)
	}
	late := time.After(waitTimeout)
	for {
		output := w.printed()[before:]
		missing := ""
		for _, line := range b.prints {
			if !strings.Contains(output, line) {
				missing = line
			}
		}
		over := strings.HasSuffix(output, "end of the block\n")
		switch {
		case missing == "" && goesOn != over:
			return
		case over:
			t.Fatalf("this ends (must go on: %t) and does not print %q:\n%s\n%s", goesOn, missing, b.code, output)
		}
		select {
		case <-w.ended:
			t.Fatalf("a command failed:\n%s\n%s", b.code, w.printed()[before:])
		case <-late:
			t.Fatalf("after %s this has not come to its end, or to print %q:\n%s\n%s", waitTimeout, missing, b.code, output)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// page is a document, and where a test must differ from its reader: it leaves a reader's own
// cluster, operator and ports alone, and does not build the manager anew while other suites
// start it.
type page struct {
	name string
	// goesOn has the terminals whose last command ends with the test.
	goesOn string
	// instead has for what the page says what the test does.
	instead map[string]string
}

func TestQuickstart(t *testing.T) {
	own := scratch.Short(t)
	execute(t, own, page{name: "quickstart.md", goesOn: "12", instead: map[string]string{
		"~/greeter":                    own + "/greeter",
		"$ENSIGN/.dev/kubeconfig":      own + "/kubeconfig",
		"\n$ENSIGN/bin/manager\n```\n": "\n$ENSIGN/bin/manager --metrics-bind-address=0 --health-probe-bind-address=0 --user-metrics-bind-address=0\n```\n",
	}})
}

func TestTutorial(t *testing.T) {
	own := scratch.Short(t)
	execute(t, own, page{name: "tutorial.md", goesOn: "13", instead: map[string]string{"~/banner-operator": own + "/banner-operator"}})
}

func TestTutorialMySQL(t *testing.T) {
	own := scratch.Short(t)
	execute(t, own, page{name: "tutorial-mysql.md", goesOn: "124", instead: map[string]string{
		"~/mysql-operator":  own + "/mysql-operator",
		".dev/mariadb.env":  own + "/mariadb.env",
		"make devmariadb\n": "make devmariadb ARGS='--login " + own + "/mariadb.env'\n",
	}})
}

func execute(t *testing.T, own string, p page) {
	t.Helper()
	root := scratch.Repository(t)
	content, err := os.ReadFile(filepath.Join(root, "docs", p.name))
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	p.instead["$PWD/.dev/kubeconfig"] = own + "/kubeconfig"
	p.instead["make devcluster\n"] = "make devcluster ARGS='--kubeconfig " + own + "/kubeconfig'\n"
	p.instead["make build python\n"] = "make python\n"
	for said, done := range p.instead {
		if !strings.Contains(text, said) {
			t.Fatalf("docs/%s does not say %q", p.name, said)
		}
		text = strings.ReplaceAll(text, said, done)
	}
	text = deadline.ReplaceAllString(text, "--timeout="+waitTimeout.String())
	env := append(os.Environ(), "TMPDIR="+own)
	terminals := map[string]*terminal{}
	for _, b := range blocksOf(text) {
		if terminals[b.terminal] == nil {
			terminals[b.terminal] = open(t, root, env)
		}
		began := time.Now()
		terminals[b.terminal].paste(t, b, strings.Contains(p.goesOn, b.terminal))
		t.Logf("terminal %s, %.1f s: %s", b.terminal, time.Since(began).Seconds(), strings.SplitN(b.code, "\n", 2)[0])
	}
	if len(terminals) != len(p.goesOn)+1 { // In one of them commands end.
		t.Errorf("docs/%s has %d terminals", p.name, len(terminals))
	}
}
