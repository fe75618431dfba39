package main

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// The end of what a program prints is waited for by whoever started it.
func TestAServerThatNeverAnswersHoldsNoDescriptor(t *testing.T) {
	s := newStage(t)
	// The kernel accepts for it, and keeps what it is sent.
	if err := syscall.Listen(bound(t, s.socket()), 8); err != nil {
		t.Fatal(err)
	}
	s.cold() // It reads to the end of the output.
}

func TestWithoutAServer(t *testing.T) {
	for why, place := range map[string]func(path string) error{
		"no socket":      func(string) error { return nil },
		"a file":         func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a directory":    func(path string) error { return os.Mkdir(path, 0o700) },
		"a dead link":    func(path string) error { return os.Symlink("/nowhere", path) },
		"a named pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a deaf socket":  func(path string) error { bound(t, path); return nil },
		"a busy socket":  func(path string) error { return busy(t, path) },
		"another's kind": func(path string) error { return syscall.Mknod(path, syscall.S_IFSOCK|0o600, 0) },
	} {
		t.Run(why, func(t *testing.T) {
			s := newStage(t)
			if err := place(s.socket()); err != nil {
				t.Fatal(err)
			}
			s.cold()
		})
	}
}

// unix is a socket, for the test's time.
func unix(t *testing.T, flags int) int {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|flags, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	return fd
}

// bound is a socket with a name, which does not listen.
func bound(t *testing.T, path string) int {
	t.Helper()
	fd := unix(t, 0)
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	return fd
}

// busy is a socket with as many connections waiting as it takes.
func busy(t *testing.T, path string) error {
	t.Helper()
	if err := syscall.Listen(bound(t, path), 0); err != nil {
		return err
	}
	for {
		err := syscall.Connect(unix(t, syscall.SOCK_NONBLOCK), &syscall.SockaddrUnix{Name: path})
		if errors.Is(err, syscall.EAGAIN) {
			return nil // It is full.
		}
		if err != nil {
			return err
		}
	}
}
