package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patient is for a machine that has much else to do.
const patient = 2 * time.Minute

// program is the stand-in, built once.
var program string

func TestMain(m *testing.M) {
	if socket := os.Getenv("FOREIGN_SERVER"); socket != "" {
		foreign(socket)
		return
	}
	heedSignals()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "warm-exec")
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if err := os.Chmod(dir, 0o755); err != nil {
			panic(err)
		}
		program = filepath.Join(dir, "warm-exec")
		build := exec.Command("go", "build", "-o", program, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			panic(fmt.Sprintf("%v: %s", err, out))
		}
		return m.Run()
	}())
}

// heedSignals catches what these tests were started to ignore, as by nohup: what is
// caught is not ignored by the programs that a process starts.
func heedSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// stage is a directory with a stand-in for a shell, and what a server is told.
type stage struct {
	t        *testing.T
	dir      string
	listener *net.UnixListener
}

func newStage(t *testing.T) *stage {
	t.Helper()
	dir, err := os.MkdirTemp("", "w") //nolint:usetesting // The path of t.TempDir is as long as the test's name.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, err := range []error{
		os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "bin"), 0o755), os.Mkdir(filepath.Join(dir, "real"), 0o755),
		os.Symlink(program, filepath.Join(dir, "bin", "sh")), os.Symlink("/bin/sh", filepath.Join(dir, "real", "sh")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return &stage{t: t, dir: dir}
}

func (s *stage) socket() string  { return filepath.Join(s.dir, "sh.sock") }
func (s *stage) standin() string { return filepath.Join(s.dir, "bin", "sh") }

// serve has the function speak to each stand-in that connects.
func (s *stage) serve(speak func(*peer)) {
	s.t.Helper()
	var err error
	if s.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: s.socket()}); err != nil {
		s.t.Fatal(err)
	}
	done := make(chan struct{})
	s.t.Cleanup(func() {
		_ = s.listener.Close() // So that the server ends.
		<-done
	})
	go func() {
		defer close(done)
		for {
			conn, err := s.listener.AcceptUnix()
			if err != nil {
				return
			}
			p := &peer{t: s.t, UnixConn: conn}
			speak(p)
			p.end()
		}
	}()
}

// peer is a server's side of a connection, with the process that is the program.
type peer struct {
	t *testing.T
	*net.UnixConn
	fork *exec.Cmd
}

func (p *peer) end() {
	_ = p.Close() // It may be closed.
	if p.fork != nil && p.fork.ProcessState == nil {
		_ = p.fork.Process.Kill() // It may have ended.
		_ = p.fork.Wait()
	}
}

// request reads what the stand-in asks for: the fields.
func (p *peer) request() []string {
	var length [4]byte
	if _, err := io.ReadFull(p, length[:]); err != nil {
		p.t.Errorf("read the length of a request: %v", err)
		return nil
	}
	payload := make([]byte, binary.LittleEndian.Uint32(length[:]))
	if _, err := io.ReadFull(p, payload); err != nil {
		p.t.Errorf("read a request: %v", err)
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(payload), "\x00"), "\x00")
}

// say sends text. That nobody takes it is the stand-in's choice.
func (p *peer) say(format string, arguments ...any) { _, _ = fmt.Fprintf(p, format, arguments...) }

// begin forks the program, leading a group of its own, and tells the stand-in.
func (p *peer) begin(command ...string) {
	p.fork = exec.Command(command[0], command[1:]...)
	p.fork.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := p.fork.Start(); err != nil {
		p.t.Error(err)
		return
	}
	p.say("ready %d\n", p.fork.Process.Pid)
}

// await reads what lets the program begin, with its descriptors.
func (p *peer) await() []*os.File {
	rights := make([]byte, 128)
	var said [1]byte
	n, length, _, _, err := p.ReadMsgUnix(said[:], rights)
	if err != nil || n != 1 || said[0] != 'g' {
		return nil
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:length])
	if err != nil || len(messages) != 1 {
		p.t.Errorf("got messages %v (error %v)", messages, err)
		return nil
	}
	descriptors, err := syscall.ParseUnixRights(&messages[0])
	if err != nil {
		p.t.Error(err)
	}
	var files []*os.File
	for i, fd := range descriptors {
		files = append(files, os.NewFile(uintptr(fd), strconv.Itoa(i)))
	}
	return files
}

// closeAll lets the descriptors go, so that whoever waits for the end of them gets it.
func closeAll(files []*os.File) {
	for _, file := range files {
		_ = file.Close() // They are somebody else's.
	}
}

// killed reports whether the program was killed, and waits for its end.
func (p *peer) killed() bool {
	timer := time.AfterFunc(patient, func() { _ = p.fork.Process.Signal(syscall.SIGUSR1) })
	defer timer.Stop()
	_ = p.fork.Wait() // How it ended is in the state.
	status, ok := p.fork.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signal() == syscall.SIGKILL
}

// run runs the stand-in with the arguments of a shell, and gives what it printed and
// how it ended, as a server says it.
func (s *stage) run(arguments ...string) (out, how string) {
	s.t.Helper()
	return s.finish(exec.Command(s.standin(), arguments...))
}

// finish does more when the command has been started, and gives what came of that.
func (s *stage) finish(cmd *exec.Cmd, more ...func()) (out, how string) {
	s.t.Helper()
	var text strings.Builder
	cmd.Stdout, cmd.Stderr = &text, &text
	cmd.WaitDelay = patient // Somebody may hold the output.
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	timer := time.AfterFunc(patient, func() { _ = cmd.Process.Signal(syscall.SIGABRT) })
	for _, do := range more {
		do()
	}
	err := cmd.Wait()
	timer.Stop()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		s.t.Fatal("no status")
	}
	if status.Signaled() {
		return text.String(), fmt.Sprintf("signal %d", status.Signal())
	}
	return text.String(), fmt.Sprintf("exit %d", status.ExitStatus())
}
