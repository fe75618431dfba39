package jsonline

import (
	"bytes"
	"errors"
	"io"
)

// windowSize is how much of a line is in memory at once, and how much of a line
// that is no event is shown.
const windowSize = 64 << 10

// maxEmptyReads is how often a reader may return nothing before it counts as
// broken.
const maxEmptyReads = 100

// lines cuts a stream into lines, and each line into windows, so that a line of
// any length costs the memory of one window. A line is first offered by next and
// then, where it is longer, by more.
type lines struct {
	r          io.Reader
	buf        []byte
	start, end int
	err        error
	// open is true while the current line goes on behind the window.
	open bool
	// first is the current line's first window until more overwrites it; then
	// head is its copy.
	first, head []byte
}

// next leaves the current line and gives the next one's first window, which is
// the whole line unless open. It is false at the end of the stream.
func (s *lines) next() ([]byte, bool) {
	for left := s.more(); left != nil; left = s.more() {
		continue // The rest of the current line is not wanted.
	}
	s.head = s.head[:0]
	s.first = nil
	for scanned := 0; ; {
		if i := bytes.IndexByte(s.buf[s.start+scanned:s.end], '\n'); i >= 0 {
			s.take(scanned + i)
			s.start++
			return s.first, true
		}
		scanned = s.end - s.start
		if scanned == len(s.buf) {
			s.take(scanned)
			s.open = true
			return s.first, true
		}
		if s.err != nil {
			s.take(scanned)
			return s.first, scanned > 0
		}
		s.fill()
	}
}

func (s *lines) take(n int) {
	s.first = s.buf[s.start : s.start+n]
	s.start += n
}

// more gives the next window of the current line, nil at its end. It
// invalidates the window before.
func (s *lines) more() []byte {
	if !s.open {
		return nil
	}
	if s.first != nil {
		s.head = append(s.head, s.first...)
		s.first = nil
	}
	for s.start == s.end && s.err == nil {
		s.fill()
	}
	window := s.buf[s.start:s.end]
	s.open = len(window) > 0
	s.start = s.end
	if i := bytes.IndexByte(window, '\n'); i >= 0 {
		s.open = false
		s.start = s.end - len(window) + i + 1
		window = window[:i]
	}
	if len(window) == 0 {
		return nil
	}
	return window
}

// fill reads at least a byte behind the unread ones, or sets err.
func (s *lines) fill() {
	if s.start > 0 {
		s.end = copy(s.buf, s.buf[s.start:s.end])
		s.start = 0
	}
	for range maxEmptyReads {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		s.err = err
		if n > 0 || err != nil {
			return
		}
	}
	s.err = io.ErrNoProgress
}

// beginning is the current line, or as much of it as a window holds.
func (s *lines) beginning() []byte {
	if s.first != nil {
		return s.first
	}
	return s.head
}

func (s *lines) failure() error {
	if errors.Is(s.err, io.EOF) {
		return nil
	}
	return s.err
}
