package runner

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// stream reads a pipe until its end or, after hurry, until it has been silent.
type stream struct {
	file    *os.File
	hurried atomic.Bool
}

func (s *stream) Read(b []byte) (int, error) {
	if s.hurried.Load() {
		s.limit()
	}
	n, err := s.file.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

func (s *stream) hurry() {
	s.hurried.Store(true)
	s.limit()
}

func (s *stream) limit() {
	// Pipes made by this process always support deadlines.
	_ = s.file.SetReadDeadline(time.Now().Add(silence))
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
