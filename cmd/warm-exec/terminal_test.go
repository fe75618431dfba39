package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"
)

// terminal is a new terminal, whose other end nobody reads.
func terminal(t *testing.T) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	var number, unlock int32
	for command, value := range map[uintptr]*int32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &unlock} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), command, uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Fatal(errno)
		}
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	return slave
}

// leading is a command that leads a session with the terminal, which is its standard input.
func leading(slave *os.File, name string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(name, arguments...)
	cmd.Stdin, cmd.SysProcAttr = slave, &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return cmd
}

func TestTheTerminalIsHandedOver(t *testing.T) {
	s := newStage(t)
	slave := terminal(t)
	s.serve(func(p *peer) {
		p.request()
		p.begin("/bin/sleep", "600")
		files := p.await()
		defer closeAll(files)
		taking := leading(files[0], "/bin/sh", "-c", "echo mine > /dev/tty; tty")
		if out, err := taking.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != slave.Name() {
			p.t.Errorf("got %q (error %v)", out, err)
		}
		p.say("exit 4\n")
	})
	if out, how := s.finish(leading(slave, s.standin(), "-c", "echo real")); out != "" || how != "exit 4" {
		t.Errorf("got %q and %s", out, how)
	}
}

func TestTheTerminalIsTakenBack(t *testing.T) {
	s := newStage(t)
	slave := terminal(t)
	s.serve(func(p *peer) {
		p.request()
		_ = p.CloseRead() // What lets the program begin can't be sent.
		p.begin("/bin/sleep", "600")
		p.killed()
	})
	if out, how := s.finish(leading(slave, s.standin(), "-c", "echo mine > /dev/tty; tty; exit 6")); strings.TrimSpace(out) != slave.Name() || how != "exit 6" {
		t.Errorf("got %q and %s", out, how)
	}
}

func TestATerminalThatIsNotItsOwnMakesItCold(t *testing.T) {
	for why, script := range map[string]string{
		"it leads no session":                 `"$0" -c "echo real; exit 5"`,
		"the terminal is not its own's input": `"$0" -c "echo real; exit 5" < /dev/null`,
	} {
		t.Run(why, func(t *testing.T) {
			s := newStage(t)
			slave := terminal(t)
			var asked atomic.Bool
			s.serve(func(*peer) { asked.Store(true) })
			out, how := s.finish(leading(slave, "/bin/sh", "-c", script+"; exit $?", s.standin()))
			if out != "real\n" || how != "exit 5" || asked.Load() {
				t.Errorf("got %q and %s, the server was asked: %t", out, how, asked.Load())
			}
		})
	}
}
