package fence

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// writeToVariable is the environment variable with the address to which the test binary
// writes when it plays the leader that is stopped. Its lease has passed by its clock once there
// is a file at the path of lateVariable.
const writeToVariable, lateVariable = "FENCE_TEST_WRITE_TO", "FENCE_TEST_LATE"

func TestMain(m *testing.M) {
	if address := os.Getenv(writeToVariable); address != "" {
		scratch.Leave(playLeader(address))
	}
	os.Exit(m.Run())
}

const leaseDuration = time.Hour

// playLeader holds a lease and writes as fast as it can until the fence refuses.
func playLeader(address string) int {
	now := func() Instant {
		if _, err := os.Stat(os.Getenv(lateVariable)); err == nil {
			return Now().Add(leaseDuration)
		}
		return Now()
	}
	f := New(Options{LeaseDuration: leaseDuration, RetryPeriod: time.Second, Now: now})
	c, err := f.Dial(context.Background(), "tcp", address)
	if err != nil {
		return 2
	}
	for f.RecordRenewal(now()); ; f.RecordRenewal(now()) {
		if _, err := c.Write([]byte{'.'}); err != nil {
			if errors.Is(err, ErrLost) {
				return 0
			}
			return 3
		}
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func accept(t *testing.T, listener net.Listener) net.Conn {
	t.Helper()
	peer, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close() })
	if err := peer.SetDeadline(time.Now().Add(scratch.WaitTimeout)); err != nil {
		t.Fatal(err)
	}
	return peer
}

func dial(t *testing.T, f *Fence) (near, far net.Conn) {
	t.Helper()
	listener := listen(t)
	near, err := f.Dial(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = near.Close() })
	return near, accept(t, listener)
}

// unread reports whether there is data to read. On a busy machine, a read may end by its
// deadline although there is some.
func unread(t *testing.T, peer net.Conn) (is bool) {
	t.Helper()
	socket, err := peer.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := socket.Control(func(fd uintptr) {
		n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		is = n > 0 && err == nil
	}); err != nil {
		t.Fatal(err)
	}
	return is
}

func TestAStoppedProcessWritesNothingOnWaking(t *testing.T) {
	listener := listen(t)
	leader := exec.Command(os.Args[0])
	late := filepath.Join(t.TempDir(), "late")
	leader.Env = append(os.Environ(), writeToVariable+"="+listener.Addr().String(), lateVariable+"="+late)
	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = leader.Process.Kill() }()
	peer := accept(t, listener)
	received := bufio.NewReader(peer)
	for range 1000 {
		if _, err := received.ReadByte(); err != nil {
			t.Fatal(err)
		}
	}
	if err := leader.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	scratch.Eventually(t, "the leader to be stopped", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", leader.Process.Pid))
		return err == nil && strings.Contains(string(stat), ") T ")
	})
	scratch.Write(t, filepath.Dir(late), map[string]string{"late": ""}) // Another candidate may lead now.
	// Read all that was written before the stop: 200 ms without data are its end.
	for read := int64(1); read > 0 || unread(t, peer); {
		if err := peer.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		var err error
		if read, err = io.Copy(io.Discard, received); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("want silence from a stopped process, got %v", err)
		}
	}
	if err := errors.Join(peer.SetReadDeadline(time.Now().Add(scratch.WaitTimeout)), leader.Process.Signal(syscall.SIGCONT)); err != nil {
		t.Fatal(err)
	}
	written, _ := io.Copy(io.Discard, io.LimitReader(received, 1000)) // The connection is reset.
	_ = peer.Close()
	// One byte is possible: the process may have been stopped between check and write.
	if written > 1 {
		t.Errorf("%d bytes were written after waking", written)
	}
	if err := leader.Wait(); err != nil {
		t.Errorf("want the write to fail for the lost lease, got %v", err)
	}
}

func TestAStandbyReplicaMayWriteRequests(t *testing.T) {
	f, _ := newTestFence(Options{})
	near, far := dial(t, f)
	if _, err := near.Write([]byte("GET")); err != nil {
		t.Errorf("want its requests to pass, got %v", err)
	}
	got := make([]byte, 3)
	if _, err := io.ReadFull(far, got); err != nil || string(got) != "GET" {
		t.Errorf("want what was written, got %q, %v", got, err)
	}
}

func TestConnectionsEndWithTheLease(t *testing.T) {
	f, c := newTestFence(Options{})
	near, far := dial(t, f)
	f.RecordRenewal(c.read())
	reading := make(chan error, 1)
	go func() {
		_, err := near.Read(make([]byte, 1))
		reading <- err
	}()
	c.advance(12 * time.Second)
	if _, err := near.Write([]byte("PATCH")); !errors.Is(err, ErrLost) {
		t.Errorf("want %v, got %v", ErrLost, err)
	}
	select {
	case err := <-reading:
		if err == nil {
			t.Error("want a stream that is being read to end")
		}
	case <-time.After(scratch.WaitTimeout):
		t.Fatal("a stream that was being read did not end")
	}
	if n, err := far.Read(make([]byte, 1)); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("want a reset, which drops what is on its way, got %d bytes, %v", n, err)
	}
	if _, err := f.Dial(t.Context(), "tcp", listen(t).Addr().String()); !errors.Is(err, ErrLost) {
		t.Errorf("want no new connection, got %v", err)
	}
}

func TestClosedConnectionsAreUnregistered(t *testing.T) {
	f, _ := newTestFence(Options{})
	near, _ := dial(t, f)
	if len(f.conns) != 1 {
		t.Fatalf("want the connection to be known, got %d", len(f.conns))
	}
	_ = near.Close()
	if len(f.conns) != 0 {
		t.Errorf("want none, got %d", len(f.conns))
	}
}
