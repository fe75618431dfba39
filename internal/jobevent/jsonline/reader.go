package jsonline

import (
	"encoding/json"
	"io"
)

// Bounds of what is kept of one line.
const (
	// MaxText is the number of bytes that are kept of one string.
	MaxText = 64 << 10
	// MaxName is the same for a key, or for whatever else is a name.
	MaxName = 1 << 10
	// MaxValue is the number of bytes that are kept of all strings and keys of
	// the values of one line.
	MaxValue = 256 << 10

	maxNodes  = 8 << 10 // kept values in one line
	maxDepth  = 64      // kept levels of a value
	maxNumber = 64      // bytes of a number
)

// CutMark ends a text, and stands for a value, that was too large to keep.
const CutMark = "… [cut]"

// CutKey is the member which says of an object that others are missing.
const CutKey = "…"

// Reader walks over lines. After Next the caller walks over the line's one value
// and then asks Done. Every method that walks consumes exactly one value, and
// does nothing once the line has turned out not to be JSON. JSON here is what
// Python's json module writes: NaN and infinities are numbers, half a surrogate
// pair is a character.
type Reader struct {
	lines lines
	// win is the window, pos the first byte of it that is not consumed.
	win []byte
	pos int
	bad bool
	// scratch is where strings and numbers are put together.
	scratch []byte
	// nodes and room are what may still be kept of this line's values.
	nodes, room int
}

// NewReader reads lines from r, which it reads in large pieces and to its end.
func NewReader(r io.Reader) *Reader {
	return &Reader{lines: lines{
		r:    r,
		buf:  make([]byte, windowSize),
		head: make([]byte, 0, windowSize),
	}}
}

// Next goes to the next line, whatever is left of the current one. It is false
// at the end of the stream.
func (r *Reader) Next() bool {
	window, ok := r.lines.next()
	r.win, r.pos, r.bad = window, 0, false
	r.nodes, r.room = maxNodes, MaxValue
	return ok
}

// Beginning is the line without its line feed, or its first 64 KiB. It is valid
// until the next call of Next.
func (r *Reader) Beginning() []byte { return r.lines.beginning() }

// Err is why the stream ended, nil for its end.
func (r *Reader) Err() error { return r.lines.failure() }

// Done tells whether the line was one value and nothing else but white space.
func (r *Reader) Done() bool {
	r.peek()
	return !r.bad && r.pos == len(r.win)
}

// Object walks over an object. member must consume the value; its key is cut to
// MaxName and valid until it does. Any other value is passed over.
func (r *Reader) Object(member func(key []byte)) {
	if r.peek() != '{' {
		r.Skip()
		return
	}
	r.byte()
	if r.peek() == '}' {
		r.byte()
		return
	}
	for !r.bad {
		r.peek()
		key := r.text(MaxName)
		r.expect(':')
		if r.bad {
			return
		}
		member(key)
		if !r.goesOn('}') {
			return
		}
	}
}

// Text gives a string's first limit bytes, cut between characters and marked if
// it is longer; "" for any other value.
func (r *Reader) Text(limit int) string {
	if r.peek() != '"' {
		r.Skip()
		return ""
	}
	return string(r.text(limit))
}

// Literal gives a number, true, false or null as it is written; "" for any other
// value.
func (r *Reader) Literal() string {
	switch r.peek() {
	case '"', '{', '[':
		r.Skip()
		return ""
	}
	return string(r.literal())
}

// Skip passes over a value.
func (r *Reader) Skip() {
	depth := 0
	for !r.bad {
		switch c := r.peek(); c {
		case '"':
			r.text(0)
		case '{', '[':
			depth++
			r.byte()
			continue
		case '}', ']':
			depth--
			r.byte()
		case ',', ':':
			r.bad = r.bad || depth == 0
			r.byte()
			continue
		default:
			r.literal()
		}
		if depth <= 0 {
			r.bad = r.bad || depth < 0
			return
		}
	}
}

// Value gives a value as nil, bool, string, json.Number, []any or
// map[string]any. NaN and infinities become strings. Once the line's values have
// used up what may be kept, CutMark stands for the rest of an array and for the
// member CutKey of an object.
func (r *Reader) Value() any { return r.value(maxDepth) }

func (r *Reader) value(depth int) any {
	if r.spent() {
		r.Skip()
		return CutMark
	}
	r.nodes--
	switch c := r.peek(); {
	case c == '"':
		text := string(r.text(min(MaxText, r.room)))
		r.room -= len(text)
		return text
	case c != '{' && c != '[':
		return scalar(r.literal())
	case depth == 0:
		r.Skip()
		return CutMark
	case c == '{':
		return r.members(depth)
	}
	return r.elements(depth)
}

func (r *Reader) spent() bool { return r.nodes <= 0 || r.room <= 0 }

func (r *Reader) members(depth int) map[string]any {
	object := map[string]any{}
	r.Object(func(key []byte) {
		if r.spent() {
			object[CutKey] = CutMark
			r.Skip()
			return
		}
		name := string(key)
		r.room -= len(name)
		object[name] = r.value(depth - 1)
	})
	return object
}

func (r *Reader) elements(depth int) []any {
	array := []any{}
	cut := false
	r.byte()
	if r.peek() == ']' {
		r.byte()
		return array
	}
	for !r.bad {
		if r.spent() {
			cut = true
			r.Skip()
		} else {
			array = append(array, r.value(depth-1))
		}
		if !r.goesOn(']') {
			break
		}
	}
	if cut {
		array = append(array, CutMark)
	}
	return array
}

func scalar(literal []byte) any {
	switch string(literal) {
	case "null":
		return nil
	case "true":
		return true
	case "false":
		return false
	case "NaN", "Infinity", "-Infinity":
		return string(literal)
	}
	if !json.Valid(literal) {
		return string(literal)
	}
	return json.Number(literal)
}
