package outcomes

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/test/harness/cores"
	"github.com/ensign-operator/ensign/test/harness/scratch"
	"github.com/ensign-operator/ensign/test/runs/bench"
)

// table is the directory of one play in one form, and the programs that run it.
type table struct {
	env     pyenv.Env
	dir     string
	content string // roles and playbooks
	environ []string
}

func newTable(t *testing.T) *table {
	t.Helper()
	dir := scratch.Short(t)
	b := &table{env: cores.Find(t, ".venv"), dir: dir, content: filepath.Join(dir, "content")}
	home := filepath.Join(dir, "home")
	b.environ = []string{"PATH=/usr/bin:/bin", "HOME=" + home, "LANG=C.UTF-8"}
	for _, made := range []string{home, filepath.Join(dir, "tmp"), b.content} {
		if err := os.Mkdir(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *table) write(t *testing.T, name, content string) string {
	t.Helper()
	text := strings.NewReplacer("@PYTHON@", b.env.Python, "@CONTENT@", b.content).Replace(content)
	scratch.Write(t, b.content, map[string]string{name: text})
	return filepath.Join(b.content, name)
}

// run runs a play by our runner, as the controller would.
func (b *table) run(t *testing.T, p play, spec runner.Spec, number int) runner.Result {
	t.Helper()
	spec.UID, spec.ID, spec.Timeout, spec.Verbosity = bench.UID, fmt.Sprintf("run-%d", number), p.timeout, 2
	o := order{
		Root: filepath.Join(b.dir, "runs"), Binary: b.env.Runner, Python: b.env.Python, Env: b.environ,
		Args: p.args, SkipFacts: true, Spec: spec,
	}
	if p.inventory != "" {
		o.Inventory = b.write(t, "hosts", p.inventory)
	}
	var input bytes.Buffer
	if err := gob.NewEncoder(&input).Encode(o); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), orderVariable+"=1")
	cmd.Stdin = &input
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var result runner.Result
	if err := gob.NewDecoder(bytes.NewReader(out)).Decode(&result); err != nil {
		t.Fatal(err)
	}
	return result
}

// truth is what Ansible itself says of a play.
type truth struct {
	exit   int // -1 when a signal ended it
	hosts  int // hosts in the recap
	recap  bool
	played bool           // a play that it did not skip for want of hosts
	counts map[string]int // over all hosts
	output string
}

var (
	playLine   = regexp.MustCompile(`(?m)^PLAY \[`)
	recapLine  = regexp.MustCompile(`(?m)^\S+ +: (ok=.*)$`)
	recapCount = regexp.MustCompile(`(\w+)=(\d+)`)
)

// ansible runs the play with plain ansible-playbook, and reads what it prints.
func (b *table) ansible(t *testing.T, p play, playbook string, vars []byte) truth {
	t.Helper()
	inventory := p.inventory
	if inventory == "" {
		inventory = "localhost ansible_connection=local ansible_python_interpreter=@PYTHON@ ansible_async_dir=@CONTENT@/async\n"
	}
	args := []string{"-i", b.write(t, "hosts", inventory), "-e", "@" + b.write(t, "../vars.json", string(vars))}
	args = append(append(args, strings.Fields(p.args)...), playbook)
	cmd := exec.CommandContext(t.Context(), filepath.Join(b.env.Bin, "ansible-playbook"), args...)
	cmd.Dir = b.dir
	cmd.Env = append([]string{"ANSIBLE_NOCOLOR=1", "ANSIBLE_ROLES_PATH=" + filepath.Join(b.content, "roles"), "ANSIBLE_LOCAL_TEMP=" + filepath.Join(b.dir, "tmp")}, b.environ...)
	cmd.Env = append(cmd.Env, "PATH="+b.env.Bin+":/usr/bin:/bin")
	// Not a pipe, which what the play leaves behind could hold open.
	output, err := os.Create(filepath.Join(b.dir, "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = output.Close() }()
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(output.Name())
	if err != nil {
		t.Fatal(err)
	}
	return parse(cmd.ProcessState.ExitCode(), string(said))
}

func parse(exit int, output string) truth {
	said := truth{exit: exit, output: output, counts: map[string]int{}}
	said.played = len(playLine.FindAllString(output, -1)) > strings.Count(output, "\nskipping: no hosts matched\n")
	_, recap, found := strings.Cut(output, "PLAY RECAP ")
	said.recap = found
	for _, line := range recapLine.FindAllStringSubmatch(recap, -1) {
		said.hosts++
		for _, count := range recapCount.FindAllStringSubmatch(line[1], -1) {
			n, err := strconv.Atoi(count[2])
			if err == nil {
				said.counts[count[1]] += n
			}
		}
	}
	return said
}

// success is Ansible's own verdict, as far as it goes, and what is stricter in
// Ensign: a play had a host, and none failed. Where a host was unreachable in the end, Ansible
// never exits with 0; its count alone says nothing, for it has also hosts whose errors were cleared.
func (s truth) success() bool {
	return s.exit == 0 && s.recap && s.played && s.counts["failed"] == 0
}

// agrees compares the counts of a run with Ansible's.
func (s truth) agrees(sum jobevent.Summary) bool {
	ours := map[string]int{
		"ok": sum.OK, "changed": sum.Changed, "unreachable": sum.Unreachable, "failed": sum.Failures,
		"skipped": sum.Skipped, "rescued": sum.Rescued, "ignored": sum.Ignored,
	}
	for name, n := range ours {
		if s.counts[name] != n {
			return false
		}
	}
	return s.recap == sum.StatsSeen && s.hosts == sum.Hosts
}
