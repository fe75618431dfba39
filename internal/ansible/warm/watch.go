package warm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

const (
	// lookPause is the time between two looks at a server, and how long it may take to
	// answer: a machine may be very busy.
	lookPause = 10 * time.Second
	// startTime is how long it may take to import what it serves.
	startTime = 5 * time.Minute
	// maxAnswer is longer than any answer.
	maxAnswer = 512
)

var (
	errSilent = errors.New("it says something else")
	errAlien  = errors.New("another process listens there")
)

// watch looks after the process until ended is closed. One that does not answer its
// manager would not tell how its forks end either, and is killed. One that stand-ins
// can't reach goes on for the forks it has, and ends after them.
func (v *server) watch(ended <-chan struct{}) {
	ticker := time.NewTicker(v.pool.lookPause)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
		}
		if v.silent() {
			v.log.Info("a server for warm runs does not answer, and is killed")
			v.kill()
			continue
		}
		v.ask()
		if pid := v.serves(); pid != 0 {
			if err := reach(v.set.socket(v.kind), pid, v.pool.lookPause); err != nil {
				v.leave(err)
			}
		}
	}
}

// silent reports whether the process has not answered what it was asked, or has taken
// too long to start.
func (v *server) silent() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.serving || v.leaving {
		return v.asked && !v.answered
	}
	return time.Since(v.changed) > startTime
}

// ask asks the process to say that it works.
func (v *server) ask() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.process != nil && (v.serving || v.leaving) {
		v.asked, v.answered = true, false
		_, _ = v.process.life.WriteString("p") // One that can't be asked does not answer.
	}
}

func (v *server) answer() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answered = true
}

// serves returns the process if stand-ins are to reach it, and 0 otherwise.
func (v *server) serves() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.process == nil || !v.serving {
		return 0
	}
	return v.process.cmd.Process.Pid
}

// leave lets the process end when it has no fork left, so that the next one is started.
func (v *server) leave(reason error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.process == nil || !v.serving {
		return
	}
	v.log.Info("a server for warm runs can't be reached, and is replaced when the runs that it has forked have ended", "reason", reason.Error())
	v.serving, v.leaving = false, true
	_, _ = v.process.life.WriteString("r") // One that can't be told has ended.
}

// reach has the server at the socket fork, which must be this process.
func reach(socket string, pid int, within time.Duration) error {
	deadline := time.Now().Add(within)
	conn, err := dial(socket, deadline)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	if listening, err := listens(conn); err != nil || listening != pid {
		return errors.Join(errAlien, err)
	}
	if _, err := conn.Write(make([]byte, 4)); err != nil { // A request of no length.
		return err
	}
	line, err := bufio.NewReader(io.LimitReader(conn, maxAnswer)).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "cold ping") {
		return fmt.Errorf("%w: %q", errSilent, line)
	}
	return nil
}

// dial connects also when many others do at the moment.
func dial(socket string, deadline time.Time) (*net.UnixConn, error) {
	for ; ; <-time.After(time.Millisecond) {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket})
		if !errors.Is(err, syscall.EAGAIN) || time.Now().After(deadline) {
			return conn, err
		}
	}
}

// listens returns the process that listens at the other end.
func listens(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var errPeer error
	err = raw.Control(func(fd uintptr) {
		var peer *syscall.Ucred
		if peer, errPeer = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); errPeer == nil {
			pid = int(peer.Pid)
		}
	})
	return pid, errors.Join(err, errPeer)
}
