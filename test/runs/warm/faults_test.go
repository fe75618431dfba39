package warm

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/pkg/content"
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
	forked    moment = "when a run was forked"
	inModule  moment = "in the middle of a module"
	itsEnding moment = "when a run has ended, which is not told yet"
)

// victim is a server that something happens to.
type victim struct {
	*counted
	t      *testing.T
	pid    int
	frozen bool // and left so
	missed bool // was the moment: the server had been replaced by then
	undo   func()
}

func (v *victim) signal(s syscall.Signal) {
	v.t.Helper()
	if err := syscall.Kill(v.pid, s); err != nil {
		v.t.Fatal(err)
	}
}

// out is a file of the module.
func (v *victim) out(name string) string { return v.In("out." + name) }

func (v *victim) await(what string, condition func() bool) {
	v.t.Helper()
	scratch.Eventually(v.t, what, condition)
}

// find looks for the server.
func (v *victim) find() {
	v.t.Helper()
	v.await("the server", func() bool {
		found := servers(v.t, v.counted)
		if len(found) == 1 {
			v.pid = found[0]
		}
		return len(found) == 1
	})
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
	scratch.Write(v.t, v.Content, map[string]string{"once.yml": "- hosts: localhost\n  gather_facts: false\n  vars: {ansible_pipelining: false}\n  tasks:\n  - once: {place: \"{{ place }}\"}\n", "library/once.py": once})
	for _, name := range []string{"gate", "lines"} {
		_ = os.Remove(v.out(name)) // There may be none.
	}
	result := make(chan runner.Result, 1)
	play := func() {
		ctx, cancel := context.WithCancel(context.Background())
		v.t.Cleanup(cancel)
		go func() {
			r, _ := v.playUntil(ctx, "once.yml")
			result <- r
		}()
	}
	v.find()
	switch when {
	case between:
		fault(v)
		play()
	case forked:
		play()
		v.await("a fork", func() bool { return len(childrenOf(v.t, v.pid)) > 0 })
		fault(v)
	case inModule, itsEnding:
		play()
		// An earlier fault may come late: the kernel looks at a limit of processor time now and then.
		v.await("the module", func() bool { return v.has(v.out("lines")) || len(result) > 0 })
		if v.missed = !v.has(v.out("lines")); v.missed {
			return <-result
		}
		if when == inModule {
			fault(v)
			break
		}
		v.signal(syscall.SIGSTOP)
		scratch.Write(v.t, v.Content, map[string]string{"out.gate": ""})
		v.await("the end of a fork", func() bool { return v.gone() || v.ended() })
		v.unlessGone(fault)
	}
	scratch.Write(v.t, v.Content, map[string]string{"out.gate": ""})
	select {
	case r := <-result:
		return r
	case <-time.After(waitTimeout):
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
	text, _ := os.ReadFile(v.out("lines")) // There is none when the module was not run.
	lines := strings.Fields(string(text))
	switch got.Outcome.Verdict {
	case content.Succeeded:
		if !slices.Equal(lines, []string{"begun", "done"}) || got.Summary.Changed != 1 {
			v.t.Errorf("the run has succeeded, and its module %q, with %+v", lines, got.Summary)
		}
	case content.Failed:
		if len(lines) > 2 || got.Outcome.Message == "" {
			v.t.Errorf("the module %q in a run that has failed: %+v", lines, got.Outcome)
		}
	default:
		v.t.Errorf("got %+v", got.Outcome)
	}
	(&asleep{counted: v.counted}).nothingLeft(v.t)
}

// recover shows that later runs are right, and warm again after a while.
func (v *victim) recover() {
	v.t.Helper()
	v.await("a warm run", func() bool {
		v.refusals()
		result, _ := v.play("heat.yml")
		if result.Outcome.Verdict == content.Succeeded && result.Summary.OK != 1 {
			v.t.Errorf("got %+v", result.Summary)
		}
		v.mu.Lock()
		cold := len(v.refused)
		v.mu.Unlock()
		return result.Warm && cold == 0 && result.Outcome.Verdict == content.Succeeded && len(servers(v.t, v.counted)) == 1
	})
}

// suffering is what comes over the server, and when.
type suffering struct {
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
		t.Run(s.what+", "+string(s.when), func(t *testing.T) {
			b.For(t)
			for missed := true; missed; {
				v := &victim{counted: b, t: t}
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

func freeze(v *victim) {
	v.frozen = true
	v.signal(syscall.SIGSTOP)
}

// All that may come over a server is endured with the build tag long.
func TestAServerThatDoesNotTell(t *testing.T) {
	endure(t, []suffering{
		{inModule, "killed", kill},
		{itsEnding, "killed", kill},
	})
}

// A server that comes to a request when its manager has given up must not begin a second run.
func TestARunBeginsOnce(t *testing.T) {
	b := newBench(t, map[string]string{"once.yml": "- hosts: localhost\n  gather_facts: false\n  tasks:\n  - shell: echo begun >> {{ place }}.lines\n"})
	b.heat()
	server := servers(t, b)[0]
	if err := syscall.Kill(server, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	b.refusals()
	go func() {
		// It goes on before it is missed.
		for refused := false; !refused; <-time.After(time.Millisecond) {
			b.mu.Lock()
			refused = len(b.refused) > 0
			b.mu.Unlock()
		}
		_ = syscall.Kill(server, syscall.SIGCONT) // Where it has been killed all the same, nothing is left that could begin.
	}()
	result, _ := b.play("once.yml")
	if result.Outcome.Verdict != content.Succeeded || result.Warm {
		t.Errorf("got %+v, warm %t", result.Outcome, result.Warm)
	}
	b.heat()
	if got := servers(t, b); len(got) == 1 && len(childrenOf(t, got[0])) > 0 {
		t.Errorf("a fork is left: %v", childrenOf(t, got[0]))
	}
	if lines, err := os.ReadFile(b.In("out.lines")); err != nil || string(lines) != "begun\n" {
		t.Errorf("got %q (error %v)", lines, err)
	}
}
