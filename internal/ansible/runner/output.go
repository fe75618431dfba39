package runner

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// stream reads a pipe until its end or, after hurry, until it has been waited for
// long enough or more has come than a pipe holds: that is not from the run.
type stream struct {
	file    *os.File
	hurried atomic.Bool
	// waited and got are the time spent and the bytes read since hurry. Only the
	// reader looks at them.
	waited time.Duration
	got    int
	// waits is true while the reader waits for the run, and not the run for it.
	waits atomic.Bool
	reads atomic.Int64
}

func (s *stream) Read(b []byte) (int, error) {
	hurried, begun := s.hurried.Load(), time.Now()
	if hurried {
		if s.got > maxPipe {
			return 0, io.EOF
		}
		s.limit(begun.Add(silence - s.waited))
	}
	s.waits.Store(true)
	n, err := s.file.Read(b)
	s.reads.Add(1)
	s.waits.Store(err != nil) // After the end there is nothing to wait for.
	if hurried {
		s.got += n
		s.waited += time.Since(begun)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

// hurry is to be called when no process of the run is left: all that it has
// written is in the pipe by then, and is read without waiting.
func (s *stream) hurry() {
	s.hurried.Store(true)
	s.limit(time.Now().Add(silence))
}

func (s *stream) limit(deadline time.Time) {
	// Pipes made by this process always support deadlines, while they are open.
	_ = s.file.SetReadDeadline(deadline)
}

// idleTicks is in how many parts an idle time is counted.
const idleTicks = 20

// awaitIdle returns true once nothing has come of the streams for limit, and false
// when ctx ends. Time in which somebody else keeps the run waiting does not count,
// nor does time in which this process does not run: it is counted in ticks, and
// those that are missed are not made up for.
func awaitIdle(ctx context.Context, limit time.Duration, streams ...*stream) bool {
	ticker := time.NewTicker(max(limit/idleTicks, time.Millisecond))
	defer ticker.Stop()
	var before int64
	for quiet := 0; quiet <= idleTicks; quiet++ {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
		var reads int64
		for _, s := range streams {
			reads += s.reads.Load()
			if !s.waits.Load() {
				quiet = 0
			}
		}
		if reads != before {
			before, quiet = reads, 0
		}
	}
	return true
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

// Write never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.write(b)
	return len(b), nil
}

func (t *tail) write(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(b) > maxTail {
		b = b[len(b)-maxTail:]
	}
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - maxTail; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
}

// String is the tail without a partial character at its beginning.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buf
	for len(b) > 0 && b[0]&0xc0 == 0x80 {
		b = b[1:]
	}
	return string(b)
}
