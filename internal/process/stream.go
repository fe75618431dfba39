package process

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// stream reads a pipe until its end. After startDraining, it also stops when it has waited
// for PipeTimeout, or has read more than a pipe holds, which cannot come from the run.
type stream struct {
	file     *os.File
	draining atomic.Bool
	// drainTime and drainBytes are the time waited and the bytes read since startDraining.
	// Only the reader uses them.
	drainTime  time.Duration
	drainBytes int
	// waiting is true while the reader waits for the run; it is false while the run may be
	// waiting for the reader.
	waiting atomic.Bool
	reads   atomic.Int64
}

func (s *stream) Read(b []byte) (int, error) {
	draining, begun := s.draining.Load(), time.Now()
	if draining {
		if s.drainBytes > maxPipeBytes {
			return 0, io.EOF
		}
		s.setDeadline(begun.Add(PipeTimeout - s.drainTime))
	}
	s.waiting.Store(true)
	n, err := s.file.Read(b)
	s.reads.Add(1)
	s.waiting.Store(err != nil) // After the end there is nothing to wait for.
	if draining {
		s.drainBytes += n
		s.drainTime += time.Since(begun)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

// startDraining is called when no process of the run is left. All its output is in the pipe
// then, and is read without waiting.
func (s *stream) startDraining() {
	s.draining.Store(true)
	s.setDeadline(time.Now().Add(PipeTimeout))
}

func (s *stream) setDeadline(deadline time.Time) {
	// Pipes made by this process always support deadlines, while they are open.
	_ = s.file.SetReadDeadline(deadline)
}

// idleTicks is the number of ticks that an idle timeout is divided into.
const idleTicks = 20

// waitUntilIdle returns true once nothing has come from the streams for limit, and false
// when ctx ends. Time in which the run waits for the reader does not count. Time in which
// the manager itself is not running (frozen, suspended) does not count either, because
// missed ticks are not made up for.
func waitUntilIdle(ctx context.Context, limit time.Duration, streams ...*stream) bool {
	ticker := time.NewTicker(max(limit/idleTicks, time.Millisecond))
	defer ticker.Stop()
	var readsBefore int64
	for quietTicks := 0; quietTicks <= idleTicks; quietTicks++ {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
		var reads int64
		for _, s := range streams {
			reads += s.reads.Load()
			if !s.waiting.Load() {
				quietTicks = 0
			}
		}
		if reads != readsBefore {
			readsBefore, quietTicks = reads, 0
		}
	}
	return true
}

// MaxTailBytes is how much text a Tail keeps. It is less than the length of an outcome's
// message, so that the end of the text, which says most, fits in.
const MaxTailBytes = 3 << 10

// Tail keeps the last MaxTailBytes that are written to it.
type Tail struct {
	mu  sync.Mutex
	buf []byte
}

// Write never fails.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	if len(b) > MaxTailBytes {
		b = b[len(b)-MaxTailBytes:]
	}
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - MaxTailBytes; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return n, nil
}

// String returns the tail without an incomplete character at its beginning.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buf
	for len(b) > 0 && b[0]&0xc0 == 0x80 {
		b = b[1:]
	}
	return string(b)
}
