package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// foreign is a server of another user, who listens where this one's stand-ins connect.
func foreign(socket string) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		panic(err)
	}
	fmt.Println("listening")
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte("ready " + strconv.Itoa(os.Getpid()) + "\nexit 0\n"))
		got, _ := io.ReadAll(conn)
		fmt.Printf("got %d\n", len(got))
	}
}

// Who is not root can't be anybody else.
func TestAServerOfAnotherUserIsToldNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	s := newStage(t)
	if err := os.Chmod(s.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "server"), self, 0o755); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(filepath.Join(s.dir, "server"))
	server.Env = []string{"FOREIGN_SERVER=" + s.socket()}
	server.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = server.Process.Kill() // It ends by that only.
		_ = server.Wait()
	}()
	var word string
	if _, err := fmt.Fscan(out, &word); err != nil {
		t.Fatal(err)
	}
	s.cold()
	var length int
	if _, err := fmt.Fscan(out, &word, &length); err != nil || length != 0 {
		t.Errorf("it was told %d bytes (error %v)", length, err)
	}
}
