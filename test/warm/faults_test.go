package warm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// once is a module that notes when it begins and when it is done, and waits between.
const once = `from ansible.module_utils.basic import AnsibleModule
import os, time
m = AnsibleModule(dict(place=dict()))
def note(text):
    with open(m.params['place'] + '.lines', 'a') as f:
        f.write(text + '\n')
note('begun')
while not os.path.exists(m.params['place'] + '.gate'):
    time.sleep(0.01)
block = bytearray(64 << 20)
note('done')
m.exit_json(changed=True)
`

// moment is when something happens to a server of a run.
type moment string

const (
	between   moment = "between two runs"
	asking    moment = "while a program is asked for"
	forked    moment = "when a program was forked"
	inModule  moment = "in the middle of a module"
	itsEnding moment = "when a program has ended, which is not told yet"
)

// victim is a server that something happens to.
type victim struct {
	*bench
	t      *testing.T
	kind   string // as the servers' own arguments have it
	name   string // of its stand-in
	pid    int
	frozen bool // and left so
	missed bool // was the moment: the pool had replaced the server by then
	undo   func()
}

func (v *victim) socket() string {
	sockets, err := filepath.Glob(filepath.Join(v.runs, ".warm", "*", v.name+".sock"))
	if err != nil || len(sockets) != 1 {
		v.t.Fatalf("got sockets %q (error %v)", sockets, err)
	}
	return sockets[0]
}

func (v *victim) signal(s syscall.Signal) {
	v.t.Helper()
	if err := syscall.Kill(v.pid, s); err != nil {
		v.t.Fatal(err)
	}
}

// out is a file of the module.
func (v *victim) out(name string) string { return filepath.Join(v.content, "out."+name) }

func (v *victim) await(what string, condition func() bool) {
	v.t.Helper()
	for deadline := time.Now().Add(patience); !condition(); <-time.After(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			v.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// find looks for the server of this kind.
func (v *victim) find() {
	v.t.Helper()
	v.await("the server", func() bool {
		for _, pid := range servers(v.t, v.bench) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // It may have ended.
			if arguments := strings.Split(string(line), "\x00"); len(arguments) > 2 && strings.HasSuffix(arguments[1], "serve.py") && arguments[2] == v.kind {
				v.pid = pid
				return true
			}
		}
		return false
	})
}

// waiting reports whether a stand-in is connected that the server has not accepted.
func (v *victim) waiting() bool {
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		v.t.Fatal(err)
	}
	const state, path = 5, 7
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > path && fields[state] == "02" && fields[path] == v.socket() {
			return true
		}
	}
	return false
}

// ended reports whether a fork has ended that the server has not taken note of.
func (v *victim) ended() bool {
	for _, pid := range childrenOf(v.t, v.pid) {
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(stat), ") Z ") {
			return true
		}
	}
	return false
}

func (v *victim) has(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// suffer runs a play, has the fault come over the server at the moment, and gives what
// became of the run.
func (v *victim) suffer(when moment, fault func(*victim)) runner.Result {
	v.t.Helper()
	// A module in a file could be executed twice; one that came through a pipe is read up.
	scratch.Write(v.t, v.content, map[string]string{"once.yml": "- hosts: localhost\n  gather_facts: false\n  vars: {ansible_pipelining: false}\n  tasks:\n  - once: {place: \"{{ place }}\"}\n", "library/once.py": once})
	for _, name := range []string{"gate", "lines"} {
		_ = os.Remove(v.out(name)) // There may be none.
	}
	result := make(chan runner.Result, 1)
	play := func() {
		ctx, cancel := context.WithCancel(context.Background())
		v.t.Cleanup(cancel)
		go func() {
			r, _ := v.playUntil(ctx, "once.yml", false)
			result <- r
		}()
	}
	v.find()
	switch when {
	case between:
		fault(v)
		play()
	case asking:
		v.signal(syscall.SIGSTOP)
		play()
		v.await("a stand-in", func() bool { return v.gone() || v.waiting() })
		v.unlessGone(fault)
	case forked:
		play()
		v.await("a fork", func() bool { return len(childrenOf(v.t, v.pid)) > 0 })
		fault(v)
	case inModule:
		play()
		v.await("the module", func() bool { return v.has(v.out("lines")) })
		fault(v)
	case itsEnding:
		play()
		v.await("the module", func() bool { return v.has(v.out("lines")) })
		v.signal(syscall.SIGSTOP)
		scratch.Write(v.t, v.content, map[string]string{"out.gate": ""})
		v.await("the end of a fork", func() bool { return v.gone() || v.ended() })
		v.unlessGone(fault)
	}
	scratch.Write(v.t, v.content, map[string]string{"out.gate": ""})
	select {
	case r := <-result:
		return r
	case <-time.After(patience / 2):
		v.t.Fatal("the run is stuck")
		return runner.Result{}
	}
}

// gone reports whether the server was killed as one that does not answer, because it was
// stopped for too long: on a busy machine a moment may be long in coming.
func (v *victim) gone() bool { return syscall.Kill(v.pid, 0) != nil }

// unlessGone has the fault come over the server, which was stopped.
func (v *victim) unlessGone(fault func(*victim)) {
	if v.missed = v.gone(); !v.missed {
		fault(v)
		v.goOn()
	}
}

// goOn lets the server go on, if it is there and not meant to be frozen.
func (v *victim) goOn() {
	if !v.frozen {
		_ = syscall.Kill(v.pid, syscall.SIGCONT) // It may have been killed.
	}
}

// judge shows that the run's result is true and that nothing is left of it.
func (v *victim) judge(got runner.Result) {
	v.t.Helper()
	content, _ := os.ReadFile(v.out("lines")) // There is none when the module was not run.
	lines := strings.Fields(string(content))
	switch got.Outcome.Verdict {
	case jobevent.Succeeded:
		if !slices.Equal(lines, []string{"begun", "done"}) || got.Summary.Changed != 1 {
			v.t.Errorf("the run has succeeded, and its module %q, with %+v", lines, got.Summary)
		}
	case jobevent.Failed:
		if len(lines) > 2 || got.Outcome.Message == "" {
			v.t.Errorf("the module %q in a run that has failed: %+v", lines, got.Outcome)
		}
	default:
		v.t.Errorf("got %+v", got.Outcome)
	}
	(&asleep{bench: v.bench}).nothingLeft(v.t)
}

// recover shows that later runs are right, and warm again after a while.
func (v *victim) recover() {
	v.t.Helper()
	v.await("a warm run", func() bool {
		v.refusals()
		result, _ := v.play("heat.yml", false)
		if result.Outcome.Verdict == jobevent.Succeeded && result.Summary.OK != 1 {
			v.t.Errorf("got %+v", result.Summary)
		}
		v.mu.Lock()
		warm := len(v.forked) == len(kindsOfServers()) && len(v.refused) == 0
		v.mu.Unlock()
		return warm && result.Outcome.Verdict == jobevent.Succeeded && v.settled()
	})
}

// settled reports whether there is one server of each kind, with its socket.
func (v *victim) settled() bool {
	sockets, err := filepath.Glob(filepath.Join(v.runs, ".warm", "*", "*.sock"))
	if err != nil {
		v.t.Fatal(err)
	}
	for _, socket := range sockets {
		if info, err := os.Stat(socket); err != nil || info.Mode()&os.ModeSocket == 0 {
			return false
		}
	}
	return len(sockets) == len(kindsOfServers()) && v.launchable() != ""
}

func kindsOfServers() map[string]string {
	return map[string]string{"runner": "ansible-runner", "module": "python"}
}

// suffering is what comes over a server of a kind, and when.
type suffering struct {
	kind  string
	when  moment
	what  string
	fault func(*victim)
}

// endure performs them one after the other.
func endure(t *testing.T, all []suffering) {
	t.Helper()
	b := newBench(t, nil)
	b.heat()
	for _, s := range all {
		t.Run(s.kind+" server, "+s.what+", "+string(s.when), func(t *testing.T) {
			b.t = t
			for missed := true; missed; {
				v := &victim{bench: b, t: t, kind: s.kind, name: kindsOfServers()[s.kind]}
				v.judge(v.suffer(s.when, s.fault))
				if v.undo != nil {
					v.undo()
				}
				v.recover()
				missed = v.missed
			}
		})
	}
}

func kill(v *victim) { v.signal(syscall.SIGKILL) }

// All that may come over servers is endured with the build tag long.
func TestAServerThatDoesNotTell(t *testing.T) {
	endure(t, []suffering{
		{"module", asking, "killed", kill},
		{"module", itsEnding, "killed", kill},
	})
}

// A cold module that is killed when it has printed its result has succeeded, too.
func TestAModuleThatKillsItsParent(t *testing.T) {
	b := newBench(t, map[string]string{
		"suicide.yml":        "- hosts: localhost\n  gather_facts: false\n  tasks:\n  - suicide: {late: \"{{ late | bool }}\"}\n",
		"library/suicide.py": "from ansible.module_utils.basic import AnsibleModule\nimport os, sys, time, signal\nm = AnsibleModule(dict(late=dict(type='bool')))\ndef end():\n    os.kill(os.getppid() if 'serve.py' in open(f'/proc/{os.getppid()}/cmdline').read() else os.getpid(), signal.SIGKILL)\n    time.sleep(600)\nif not m.params['late']: end()\nprint('{\"changed\": true, \"said\": 1}')\nsys.stdout.flush()\nend()\n",
	})
	b.heat()
	for _, late := range []bool{false, true} {
		t.Run(strconv.FormatBool(late), func(t *testing.T) {
			b.t = t
			v := &victim{bench: b, t: t}
			v.recover()
			scratch.Write(t, b.content, map[string]string{"group_vars/all.yml": "late: " + strconv.FormatBool(late) + "\n"})
			cold, _ := b.play("suicide.yml", true)
			b.refusals()
			warm, _ := b.play("suicide.yml", false)
			if refused := b.refusals(); len(refused) > 0 || warm.Outcome.Verdict != cold.Outcome.Verdict || warm.Summary.Changed != cold.Summary.Changed || warm.Summary.Failures != cold.Summary.Failures {
				t.Errorf("warm %+v, %+v; cold %+v, %+v; refused %q", warm.Outcome, warm.Summary, cold.Outcome, cold.Summary, refused)
			}
			if want := map[bool]jobevent.Verdict{false: jobevent.Failed, true: jobevent.Succeeded}[late]; cold.Outcome.Verdict != want {
				t.Errorf("cold: %+v", cold.Outcome)
			}
		})
	}
}
