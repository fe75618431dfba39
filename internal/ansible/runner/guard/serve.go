package guard

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ensign-operator/ensign/internal/ansible/proctree"
)

// Command is the first argument of a guard.
const Command = "guard-runs"

const (
	// grace is the time between TERM and KILL for the runs of a manager that is
	// gone.
	grace = 2 * time.Second
	// again is the pause between two looks once a deadline has passed.
	again = time.Second
	// look is the longest pause between two looks at the clock before that.
	look = 100 * time.Millisecond
	// forever is longer than any pause.
	forever = time.Duration(math.MaxInt64)
	// stdin is the pipe's descriptor, the standard error's the last one that belongs
	// here.
	stdin, stderr = 0, 2
)

// Serve is the guard's process. args are those after Command; the pipe is the
// standard input. It returns when the manager is gone and none of its runs is left.
func Serve(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%s is started by the manager itself", Command)
	}
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP)
	closeInherited()
	w := watcher{owner: proctree.NewOwner(args[0], args[1]), pipe: stdin}
	// What the start of so large a program has left is not needed any more.
	debug.FreeOSMemory()
	return w.watch()
}

// watcher is a guard at work.
type watcher struct {
	owner  *proctree.Owner
	pipe   int    // a descriptor
	buffer []byte // of an order that has not come whole
	gone   bool   // the manager
	orders
}

// orders are what a manager tells: from the instant term on, as proctree.Now
// counts, runs get TERM, from kill on KILL. There is no deadline when term is 0.
type orders struct{ term, kill time.Duration }

// watch follows orders until the manager is gone.
func (w *watcher) watch() error {
	for {
		if err := w.wait(w.pause()); err != nil {
			return err
		}
		switch {
		case w.gone:
			w.owner.EndOwn(proctree.Now()+grace, func() bool { return false })
			return w.owner.Close()
		case w.passed():
			w.owner.EndOwn(w.kill, w.relieved)
		}
	}
}

// pause is the time until the deadline has to be looked at. It is short, because
// the clock that deadlines are told by goes on while the machine sleeps, and
// nothing else does.
func (w *watcher) pause() time.Duration {
	switch {
	case w.term == 0:
		return forever
	case w.passed():
		return again
	}
	return min(w.term-proctree.Now(), look)
}

func (w *watcher) passed() bool { return w.term > 0 && proctree.Now() >= w.term }

// relieved is true when runs need not end by the deadline any more: the manager
// has a later one, or is gone.
func (w *watcher) relieved() bool {
	return w.wait(0) != nil || w.gone || !w.passed()
}

// wait waits for orders or the manager's end, and takes them up.
func (w *watcher) wait(limit time.Duration) error {
	// Rounded up: a wait of 0 would make it busy.
	milliseconds := int((limit + time.Millisecond - 1) / time.Millisecond)
	if limit == forever {
		milliseconds = -1
	}
	fds := []unix.PollFd{{Fd: int32(w.pipe), Events: unix.POLLIN}}
	switch n, err := unix.Poll(fds, milliseconds); {
	case errors.Is(err, unix.EINTR):
		return nil
	case err != nil:
		return fmt.Errorf("wait for orders: %w", err)
	case n > 0:
		w.receive()
	}
	return nil
}

// receive reads what has come. A pipe that can't be read is one without a manager.
func (w *watcher) receive() {
	var chunk [4096]byte
	n, err := unix.Read(w.pipe, chunk[:])
	if errors.Is(err, unix.EINTR) {
		return
	}
	if err != nil || n == 0 {
		w.gone = true
		return
	}
	w.buffer = append(w.buffer, chunk[:n]...)
	for {
		line, rest, whole := bytes.Cut(w.buffer, []byte("\n"))
		if !whole {
			return
		}
		w.buffer = bytes.Clone(rest)
		if o, err := parseOrders(string(line)); err == nil {
			w.orders = o
		}
	}
}

func (o orders) line() string { return fmt.Sprintf("%d %d\n", o.term, o.kill) }

func parseOrders(line string) (orders, error) {
	var o orders
	if _, err := fmt.Sscanf(line, "%d %d", &o.term, &o.kill); err != nil {
		return orders{}, fmt.Errorf("orders %q: %w", line, err)
	}
	return o, nil
}

// closeInherited closes the files that the manager got from whoever started it
// and passed on unknowingly. Those of this program are all marked to be closed by
// an exec.
func closeInherited() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= stderr {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd) // It is nobody's.
		}
	}
}
