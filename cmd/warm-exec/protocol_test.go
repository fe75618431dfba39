package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// cold shows that the real program has run, once.
func (s *stage) cold() {
	s.t.Helper()
	if out, how := s.run("-c", "echo real; exit 5"); out != "real\n" || how != "exit 5" {
		s.t.Errorf("got %q and %s", out, how)
	}
}

func TestAServerThatDoesNotLetTheProgramBegin(t *testing.T) {
	grandchild := func(p *peer) {
		p.fork = exec.Command("/bin/sh", "-c", "sleep 600 & echo $!; wait")
		p.fork.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		out, err := p.fork.StdoutPipe()
		if err != nil || p.fork.Start() != nil {
			p.t.Error("no grandchild")
			return
		}
		var pid int
		_, _ = fmt.Fscan(out, &pid)
		p.say("ready %d\n", pid)
	}
	for why, speak := range map[string]func(*peer){
		"closes at once":                 func(*peer) {},
		"closes after a byte":            func(p *peer) { _, _ = p.Read(make([]byte, 1)) },
		"closes after the request":       func(p *peer) { p.request() },
		"refuses":                        func(p *peer) { p.request(); p.say("cold because\n") },
		"refuses before it has read":     func(p *peer) { p.say("cold because\n"); p.request() },
		"says nothing":                   func(p *peer) { p.request(); p.await() },
		"reads nothing":                  func(*peer) { <-time.After(answerTimeout + time.Second) },
		"says half of a line":            func(p *peer) { p.request(); p.say("ready %d", os.Getpid()) },
		"says an empty line":             func(p *peer) { p.request(); p.say("\n") },
		"says how it ended":              func(p *peer) { p.request(); p.say("exit 0\n") },
		"says what nobody knows":         func(p *peer) { p.request(); p.say("hello\nready 1\n") },
		"says NUL":                       func(p *peer) { p.request(); p.say("\x00\x00\n") },
		"names no process":               func(p *peer) { p.request(); p.say("ready\n") },
		"names a process by a word":      func(p *peer) { p.request(); p.say("ready x\n") },
		"names process 0":                func(p *peer) { p.request(); p.say("ready 0\n") },
		"names process -1":               func(p *peer) { p.request(); p.say("ready -1\n") },
		"names the first process":        func(p *peer) { p.request(); p.say("ready 1\n") },
		"names itself":                   func(p *peer) { p.request(); p.say("ready %d\n", os.Getpid()) },
		"names its parent":               func(p *peer) { p.request(); p.say("ready %d\n", os.Getppid()) },
		"names somebody else's child":    func(p *peer) { p.request(); grandchild(p) },
		"names a process there isn't":    func(p *peer) { p.request(); p.say("ready 999999999\n") },
		"says a line without end":        func(p *peer) { p.request(); p.say("%s", strings.Repeat("x", 1<<20)) },
		"says a byte now and then":       func(p *peer) { p.request(); drip(p, strings.Repeat("x", 400)) },
		"has closed its ear":             func(p *peer) { p.request(); _ = p.CloseRead(); p.begin("/bin/sleep", "600"); p.killed() },
		"speaks before it is asked":      func(p *peer) { p.say("cold x\ncold y\n") },
		"lets a program begin that died": func(p *peer) { p.request(); dead(p) },
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.serve(speak)
			begun := time.Now()
			s.cold()
			// Twice as long is for a machine that has much else to do.
			if took := time.Since(begun); took > 10*answerTimeout {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// drip says a text in pieces, each of which comes well within the timeout.
func drip(p *peer, text string) {
	for _, b := range []byte(text) {
		if _, err := p.Write([]byte{b}); err != nil {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
}

func dead(p *peer) {
	p.fork = exec.Command("/bin/true")
	if err := p.fork.Run(); err != nil {
		p.t.Error(err)
	}
	p.say("ready %d\n", p.fork.Process.Pid)
	p.await()
}

func TestAServerThatDoesNotSayHowTheProgramEnded(t *testing.T) {
	for why, last := range map[string]func(*peer){
		"closes":                           func(*peer) {},
		"closes its mouth":                 func(p *peer) { _ = p.CloseWrite() },
		"says half of a line":              func(p *peer) { p.say("exit 0"); _ = p.CloseWrite() },
		"says an exit without a code":      func(p *peer) { p.say("exit\n") },
		"says an exit with a word":         func(p *peer) { p.say("exit x\n") },
		"says a code that is too high":     func(p *peer) { p.say("exit 256\n") },
		"says a code that is far too high": func(p *peer) { p.say("exit 99999999999999999999\n") },
		"says a negative code":             func(p *peer) { p.say("exit -1\n") },
		"says signal 0":                    func(p *peer) { p.say("signal 0\n") },
		"says a signal there isn't":        func(p *peer) { p.say("signal 99\n") },
		"says a negative signal":           func(p *peer) { p.say("signal -9\n") },
		"says ready again":                 func(p *peer) { p.say("ready 5\n") },
		"refuses now":                      func(p *peer) { p.say("cold late\n") },
		"says an empty line":               func(p *peer) { p.say("\n") },
		"says two fields":                  func(p *peer) { p.say("exit 0 0\n") },
		"says it in capitals":              func(p *peer) { p.say("EXIT 0\n") },
		"says a line without end":          func(p *peer) { p.say("%s", strings.Repeat("0", 1<<20)) },
		"says NUL":                         func(p *peer) { p.say("exit 0\x00\n") },
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			var killed atomic.Bool
			s.serve(func(p *peer) {
				p.request()
				p.begin("/bin/sleep", "600")
				files := p.await()
				if len(files) != 3 {
					p.t.Errorf("got %d descriptors", len(files))
				}
				closeAll(files)
				last(p)
				if why == "closes" {
					_ = p.Close() // It is closed at the end otherwise.
				}
				killed.Store(p.killed())
			})
			if out, how := s.run("-c", "echo real"); out != "" || how != "signal 9" {
				t.Errorf("got %q and %s", out, how)
			}
			_ = s.listener.Close()
			for deadline := time.Now().Add(patient); !killed.Load() && time.Now().Before(deadline); {
				<-time.After(time.Millisecond)
			}
			if !killed.Load() {
				t.Error("the program was not killed")
			}
		})
	}
}

func TestItEndsAsTheProgram(t *testing.T) {
	for said, want := range map[string]string{
		"exit 0": "exit 0", "exit 1": "exit 1", "exit 255": "exit 255",
		"signal 1": "signal 1", "signal 2": "signal 2", "signal 6": "signal 6", "signal 9": "signal 9", "signal 11": "signal 11", "signal 15": "signal 15",
		"signal 34": "signal 34", "signal 64": "signal 64",
		// No program dies of these.
		"signal 18": "exit 146", "signal 17": "exit 145",
	} {
		for how, say := range map[string]func(*peer){
			"at once":           func(p *peer) { p.say("%s\n", said) },
			"byte by byte":      func(p *peer) { drip(p, said+"\n") },
			"with more than it": func(p *peer) { p.say("%s\nexit 77\n", said) },
		} {
			t.Run(said+" "+how, func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				s.serve(func(p *peer) {
					p.request()
					p.begin("/bin/sleep", "600")
					closeAll(p.await())
					say(p)
				})
				if out, how := s.run("-c", "echo real"); out != "" || how != want {
					t.Errorf("got %q and %s", out, how)
				}
			})
		}
	}
}
