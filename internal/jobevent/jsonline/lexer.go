package jsonline

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// byte consumes and gives the next byte. At the end of the line the line is bad.
func (r *Reader) byte() byte {
	if r.pos == len(r.win) && !r.refill() {
		r.bad = true
		return 0
	}
	c := r.win[r.pos]
	r.pos++
	return c
}

func (r *Reader) refill() bool {
	r.win, r.pos = r.lines.more(), 0
	return len(r.win) > 0
}

// peek gives the next byte that is no white space without consuming it, 0 at
// the end of the line.
func (r *Reader) peek() byte {
	for {
		if r.pos == len(r.win) && !r.refill() {
			return 0
		}
		switch c := r.win[r.pos]; c {
		case ' ', '\t', '\r':
			r.pos++
		default:
			return c
		}
	}
}

func (r *Reader) expect(want byte) {
	r.peek()
	if r.byte() != want {
		r.bad = true
	}
}

// goesOn is true when another member follows, false when the container ends.
func (r *Reader) goesOn(closing byte) bool {
	r.peek()
	c := r.byte()
	r.bad = r.bad || c != ',' && c != closing
	return !r.bad && c == ','
}

// literal consumes a number, true, false or null. A line with anything else
// here, or with nothing, is bad.
func (r *Reader) literal() []byte {
	r.scratch = r.scratch[:0]
	cut := false
	for r.pos < len(r.win) || r.refill() {
		c := r.win[r.pos]
		if !literalByte(c) {
			break
		}
		if cut = len(r.scratch) == maxNumber; !cut {
			r.scratch = append(r.scratch, c)
		}
		r.pos++
	}
	r.bad = r.bad || !isLiteral(r.scratch)
	if cut {
		r.scratch = append(r.scratch, CutMark...)
	}
	return r.scratch
}

func isLiteral(b []byte) bool {
	switch string(b) {
	case "null", "true", "false", "NaN", "Infinity", "-Infinity":
		return true
	}
	b = bytes.TrimPrefix(b, []byte("-"))
	return len(b) > 0 && '0' <= b[0] && b[0] <= '9' && len(bytes.Trim(b, "0123456789+-.eE")) == 0
}

func literalByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

// text consumes a string and gives its first limit bytes. They are valid until
// the next call.
func (r *Reader) text(limit int) []byte {
	s := builder{out: r.scratch[:0], limit: limit}
	if r.byte() != '"' {
		r.bad = true
	}
	for !r.bad {
		if r.pos == len(r.win) && !r.refill() {
			r.bad = true
			break
		}
		run := plain(r.win[r.pos:])
		s.add(run)
		r.pos += len(run)
		if r.pos == len(r.win) {
			continue
		}
		switch r.byte() {
		case '"':
			r.scratch = s.closed()
			return r.scratch
		case '\\':
			s.addRune(r.escaped())
		default:
			r.bad = true
		}
	}
	return nil
}

// plain is the longest prefix that means itself inside a string.
func plain(b []byte) []byte {
	for i, c := range b {
		if c == '"' || c == '\\' || c < ' ' {
			return b[:i]
		}
	}
	return b
}

// escaped consumes what follows a backslash. It may give half a surrogate pair.
func (r *Reader) escaped() rune {
	c := r.byte()
	switch c {
	case '"', '\\', '/':
		return rune(c)
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'u':
		return r.hex()
	}
	r.bad = true
	return utf8.RuneError
}

func (r *Reader) hex() rune {
	var v rune
	for range 4 {
		switch c := r.byte(); {
		case '0' <= c && c <= '9':
			v = v<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			v = v<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			v = v<<4 | rune(c-'A'+10)
		default:
			r.bad = true
		}
	}
	return v
}

// builder puts a string together and keeps its first limit bytes.
type builder struct {
	out   []byte
	limit int
	cut   bool
	// high is the first half of a surrogate pair that was added last, as U+FFFD.
	high rune
}

func (s *builder) add(text []byte) {
	if len(text) == 0 || s.cut {
		return
	}
	s.high = 0
	if room := s.limit - len(s.out); len(text) > room {
		text = text[:room]
		s.cut = true
	}
	s.out = append(s.out, text...)
}

func (s *builder) addRune(c rune) {
	if s.cut {
		return
	}
	high := s.high
	if pair := utf16.DecodeRune(high, c); pair != utf8.RuneError {
		s.out = s.out[:len(s.out)-len(string(utf8.RuneError))]
		c = pair
	}
	var buf [utf8.UTFMax]byte
	s.add(utf8.AppendRune(buf[:0], c))
	if 0xd800 <= c && c < 0xdc00 {
		s.high = c
	}
}

// closed is what was kept, as valid UTF-8, and marked if it is not all.
func (s *builder) closed() []byte {
	out := s.out
	if s.cut {
		out = trimPartialRune(out)
	}
	if !utf8.Valid(out) {
		out = bytes.ToValidUTF8(out, []byte(string(utf8.RuneError)))
		if len(out) > s.limit { // What stands for a broken byte is longer than it.
			out, s.cut = trimPartialRune(out[:s.limit]), true
		}
	}
	if s.cut {
		out = append(out, CutMark...)
	}
	return out
}

// trimPartialRune takes away the beginning of a character at the end of b.
func trimPartialRune(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if tail := b[len(b)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}
