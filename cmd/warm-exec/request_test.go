package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// asked is what a server is told of a stand-in that a shell has become.
type asked struct {
	umask, directory, ignored, blocking string
	limits                              []string
	arguments, environment              []string
}

// ask has the script become the stand-in, as "$0", and refuses it, so that the real
// program runs; it gives what that printed too.
func (s *stage) ask(cmd *exec.Cmd) (asked, string) {
	s.t.Helper()
	requests := make(chan []string, 1)
	s.serve(func(p *peer) {
		requests <- p.request()
		p.say("cold test\n")
	})
	out, _ := s.finish(cmd)
	fields := <-requests
	const fixed = 7
	if len(fields) < fixed || fields[0] != version {
		s.t.Fatalf("got %q", fields)
	}
	count, err := strconv.Atoi(fields[6])
	if err != nil {
		s.t.Fatal(err)
	}
	return asked{
		umask: fields[1], directory: fields[2], ignored: fields[3], limits: strings.Fields(fields[4]), blocking: fields[5],
		arguments: fields[fixed : fixed+count], environment: fields[fixed+count:],
	}, out
}

func shell(s *stage, script string) *exec.Cmd {
	return exec.Command("/bin/sh", "-c", script, s.standin())
}

func TestWhatAServerIsAsked(t *testing.T) {
	s := newStage(t)
	place, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cmd := shell(s, `umask 027; ulimit -Sn 123; ulimit -Hn 456; ulimit -Sc 0; trap '' HUP INT; exec "$0" -c "echo real" "" "a b" "$(printf '\377\n')"`)
	cmd.Dir, cmd.Env = place, []string{"EMPTY=", "TWICE=1", "TWICE=2", "BLANK= x\n=y", "BYTES=\xff", "ODD"}
	got, out := s.ask(cmd)
	if out != "real\n" {
		t.Errorf("the real program printed %q", out)
	}
	if got.umask != "23" || got.directory != place || got.ignored != "1 2" || got.blocking != "1" {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"-c", "echo real", "", "a b", "\xff"}, got.arguments); diff != "" {
		t.Error(diff)
	}
	if len(got.limits) != 16 || got.limits[syscall.RLIMIT_NOFILE] != "123:456" || got.limits[syscall.RLIMIT_CORE] == "" {
		t.Errorf("got limits %q", got.limits)
	}
	for _, want := range []string{"EMPTY=", "BLANK= x\n=y", "BYTES=\xff"} {
		if !slices.Contains(got.environment, want) {
			t.Errorf("%q is not in %q", want, got.environment)
		}
	}
}

func TestUnlimited(t *testing.T) {
	s := newStage(t)
	got, _ := s.ask(shell(s, `exec "$0" -c true`))
	for number, limit := range got.limits {
		var want syscall.Rlimit
		// The test's own soft limit of files is what Go has made of it.
		if err := syscall.Getrlimit(number, &want); err != nil || number == syscall.RLIMIT_NOFILE {
			continue
		}
		if limit != fmt.Sprintf("%d:%d", want.Cur, want.Max) {
			t.Errorf("limit %d is %s, and not %v", number, limit, want)
		}
	}
}

func TestADescriptorThatDoesNotBlockIsTold(t *testing.T) {
	s := newStage(t)
	// A pipe as the kernel makes it: package os would let it block for a child.
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(syscall.Close(pipe[0]), syscall.Close(pipe[1])) })
	requests := make(chan []string, 1)
	s.serve(func(p *peer) {
		requests <- p.request()
		p.say("cold test\n")
	})
	pid, err := syscall.ForkExec(s.standin(), []string{s.standin(), "-c", "true"}, &syscall.ProcAttr{Files: []uintptr{uintptr(pipe[0]), 1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
		t.Fatal(err)
	}
	if fields := <-requests; fields[5] != "0" {
		t.Errorf("got %q", fields[5])
	}
}

// What the real program sees is what it would see without the stand-in.
func TestTheRealProgramIsAsWithoutAStandin(t *testing.T) {
	const script = `umask; pwd; ulimit -Sn; ulimit -Hn; env | grep -v ^_= | sort; grep -e SigIgn -e SigBlk /proc/self/status; tr '\0' '\n' < /proc/$$/cmdline; for f in /proc/$$/fd/*; do echo ${f##*/}; done`
	s := newStage(t)
	var outputs []string
	for _, program := range []string{s.standin(), "/bin/sh"} {
		cmd := exec.Command("/bin/sh", "-c", `umask 077; ulimit -Sn 200; trap '' HUP INT; exec "$0" "$@"`, program, "-c", script, "name", "", "x y")
		cmd.Dir, cmd.Env = s.dir, []string{"A=1", "B=", "PATH=/usr/bin:/bin"}
		out, how := s.finish(cmd)
		if how != "exit 0" {
			t.Errorf("%s: %s", how, out)
		}
		outputs = append(outputs, out)
	}
	if diff := cmp.Diff(outputs[1], outputs[0]); diff != "" || len(outputs[0]) < 100 {
		t.Errorf("without - and with +: %s", diff)
	}
}

func TestNoRealProgram(t *testing.T) {
	s := newStage(t)
	for why, place := range map[string]func(link string) error{
		"no link":            func(string) error { return nil },
		"a link to nowhere":  func(link string) error { return os.Symlink("/nowhere/at/all", link) },
		"a file":             func(link string) error { return os.WriteFile(link, []byte("#!/bin/sh\n"), 0o755) },
		"a link to no file":  func(link string) error { return os.Symlink("/etc", link) },
		"a link to no thing": func(link string) error { return os.Symlink("/etc/hostname", link) },
	} {
		t.Run(why, func(t *testing.T) {
			link := filepath.Join(s.dir, "real", "sh")
			if err := os.RemoveAll(link); err != nil {
				t.Fatal(err)
			}
			if err := place(link); err != nil {
				t.Fatal(err)
			}
			if out, how := s.run("-c", "echo real"); how != "exit 127" || !strings.Contains(out, s.standin()) {
				t.Errorf("got %q and %s", out, how)
			}
		})
	}
}

func TestSignalsArePassedOn(t *testing.T) {
	for number, name := range map[syscall.Signal]string{
		syscall.SIGHUP: "HUP", syscall.SIGINT: "INT", syscall.SIGQUIT: "QUIT", syscall.SIGTERM: "TERM",
		syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2", syscall.SIGALRM: "ALRM", syscall.SIGWINCH: "WINCH", syscall.SIGCONT: "CONT",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			ready := make(chan bool, 1)
			s.serve(func(p *peer) {
				p.request()
				read, write, err := os.Pipe()
				if err != nil {
					p.t.Error(err)
					return
				}
				defer read.Close()
				p.fork = exec.Command("/bin/sh", "-c", "trap 'exit 3' "+name+"; echo; while :; do sleep 0.01; done")
				p.fork.Stdout, p.fork.SysProcAttr = write, &syscall.SysProcAttr{Setsid: true}
				if err := p.fork.Start(); err != nil {
					p.t.Error(err)
					return
				}
				_ = write.Close() // The program has it.
				_, _ = read.Read(make([]byte, 1))
				p.say("ready %d\n", p.fork.Process.Pid)
				closeAll(p.await())
				ready <- true
				_ = p.fork.Wait() // How it ended is in the state.
				p.say("exit %d\n", p.fork.ProcessState.ExitCode())
			})
			cmd := exec.Command(s.standin(), "-c", "echo real")
			send := func() {
				<-ready
				_ = cmd.Process.Signal(number) // It may have ended.
			}
			if out, how := s.finish(cmd, send); out != "" || how != "exit 3" {
				t.Errorf("got %q and %s", out, how)
			}
		})
	}
}

func TestTheProgramGetsTheDescriptors(t *testing.T) {
	s := newStage(t)
	s.serve(func(p *peer) {
		p.request()
		p.begin("/bin/sleep", "600")
		files := p.await()
		given, err := io.ReadAll(files[0])
		if err != nil {
			p.t.Error(err)
		}
		fmt.Fprintf(files[1], "out %s", given)
		fmt.Fprint(files[2], "err")
		closeAll(files)
		p.say("exit 0\n")
	})
	cmd := exec.Command(s.standin())
	cmd.Stdin = bytes.NewReader([]byte("in "))
	if out, how := s.finish(cmd); out != "out in err" || how != "exit 0" {
		t.Errorf("got %q and %s", out, how)
	}
}
