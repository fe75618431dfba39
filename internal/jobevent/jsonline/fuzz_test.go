package jsonline_test

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ensign-operator/ensign/internal/jobevent/jsonline"
)

// The largest stream that FuzzValue makes, and what one line of it may cost.
const (
	fuzzStream = 1 << 20
	lineMemory = 2 << 20
)

// FuzzValue reads the stream start, unit, end, with unit as often as times says. Whatever
// the stream is and however it arrives, each line is what encoding/json reads
// from it, with long strings cut, and costs bounded memory.
func FuzzValue(f *testing.F) {
	f.Add(`{"a":[`, `{"b":"c"},`, `null]}`, uint16(3), []byte{1, 7})
	f.Fuzz(func(t *testing.T, start, unit, end string, times uint16, chunks []byte) {
		stream := start + strings.Repeat(unit, repeats(times, len(unit))) + end
		if len(stream) > 2*fuzzStream {
			return
		}
		whole, allocated := measured(stream)
		if lines := strings.Count(stream, "\n") + 1; allocated > uint64(lines)*lineMemory {
			t.Errorf("%d bytes were allocated for %d lines of %d bytes", allocated, lines, len(stream))
		}
		pieces, err := readLines(&chunked{stream, chunks, 0})
		if err != nil || !reflect.DeepEqual(whole, pieces) {
			t.Errorf("read in pieces of %v: %.500v, %v; at once: %.500v", chunks, pieces, err, whole)
		}
		checkLines(t, stream, whole)
	})
}

// repeats is often small, since large streams take long.
func repeats(times uint16, unit int) int {
	if times < 0xf000 {
		return int(times & 0xff)
	}
	return min(int(times-0xf000)<<4, fuzzStream/max(unit, 1))
}

// seen is what a line was read as.
type seen struct {
	Value         any
	Done, Skipped bool
	Beginning     string
}

func readLines(r io.Reader) ([]seen, error) {
	lines := jsonline.NewReader(r)
	var all []seen
	for lines.Next() {
		value := lines.Value()
		all = append(all, seen{value, lines.Done(), false, string(lines.Beginning())})
	}
	return all, lines.Err()
}

// measured also says how much memory the reading took in all, where that can be
// much: measuring takes longer than reading a short line.
func measured(stream string) ([]seen, uint64) {
	if len(stream) < 16<<10 {
		all, _ := readLines(strings.NewReader(stream))
		return all, 0
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	all, _ := readLines(strings.NewReader(stream))
	runtime.ReadMemStats(&after)
	return all, after.TotalAlloc - before.TotalAlloc
}

func checkLines(t *testing.T, stream string, got []seen) {
	t.Helper()
	lines := strings.Split(stream, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	if len(lines) != len(got) {
		t.Fatalf("%d lines were read of %d", len(got), len(lines))
	}
	skipper := jsonline.NewReader(strings.NewReader(stream))
	for i, line := range lines {
		if want := line[:min(len(line), jsonline.MaxText)]; got[i].Beginning != want {
			t.Fatalf("line %d begins with %.200q, not with %.200q", i, got[i].Beginning, want)
		}
		checkKept(t, got[i].Value)
		skipper.Next()
		skipper.Skip()
		if !json.Valid([]byte(line)) || !utf8.ValidString(line) {
			continue // What Python writes beyond JSON is for TestValue.
		}
		if !got[i].Done || !skipper.Done() {
			t.Fatalf("%.200q is JSON and was not read to its end", line)
		}
		if want, fits := cutValue(line); fits && !reflect.DeepEqual(want, got[i].Value) {
			t.Fatalf("%.200q was read as %.500v, want %.500v", line, got[i].Value, want)
		}
	}
}

// checkKept makes sure that a value is bounded and fit for use.
func checkKept(t *testing.T, value any) {
	t.Helper()
	texts, nodes := weigh(t, value)
	// One string of full length may begin where hardly any room is left.
	if texts > jsonline.MaxValue+2*jsonline.MaxText || nodes > 20_000 {
		t.Fatalf("%d values with %d bytes of text are kept of one line", nodes, texts)
	}
}

func weigh(t *testing.T, value any) (texts, nodes int) {
	t.Helper()
	count := func(text string, limit int) {
		if texts += len(text); !utf8.ValidString(text) || len(text) > limit+len(jsonline.CutMark) {
			t.Fatalf("a text of %d bytes is kept, valid: %v", len(text), utf8.ValidString(text))
		}
	}
	add := func(member any) {
		moreTexts, moreNodes := weigh(t, member)
		texts, nodes = texts+moreTexts, nodes+moreNodes
	}
	nodes = 1
	switch v := value.(type) {
	case string:
		count(v, jsonline.MaxText)
	case json.Number:
		count(v.String(), 64)
	case []any:
		for _, element := range v {
			add(element)
		}
	case map[string]any:
		for key, member := range v {
			count(key, jsonline.MaxName)
			add(member)
		}
	}
	return texts, nodes
}

// cutValue is what encoding/json reads from the line, with long strings cut. It
// does not fit where more would have to be cut than that.
func cutValue(line string) (value any, fits bool) {
	c := cutter{Decoder: json.NewDecoder(strings.NewReader(line)), nodes: 8 << 10, room: jsonline.MaxValue}
	c.UseNumber()
	value = c.value(64)
	return value, c.nodes > 0 && c.room > 0
}

type cutter struct {
	*json.Decoder

	nodes, room int
}

func (c *cutter) value(depth int) any {
	c.nodes--
	token, err := c.Token()
	if err != nil {
		panic(err) // The line is valid.
	}
	switch v := token.(type) {
	case json.Delim:
		object, list := map[string]any{}, []any{}
		for c.More() {
			if v == '[' {
				list = append(list, c.value(depth-1))
				continue
			}
			key, _ := c.Token()
			name := cut(key.(string), jsonline.MaxName)
			c.room -= len(name)
			object[name] = c.value(depth - 1)
		}
		_, _ = c.Token()
		switch {
		case depth <= 0:
			return jsonline.CutMark
		case v == '[':
			return list
		}
		return object
	case string:
		text := cut(v, jsonline.MaxText)
		c.room -= len(text)
		return text
	case json.Number:
		if len(v) > 64 {
			return v.String()[:64] + jsonline.CutMark
		}
	}
	return token
}

func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + jsonline.CutMark
}

// chunked gives its text in pieces of the given sizes, over and over.
type chunked struct {
	text  string
	sizes []byte
	next  int
}

func (c *chunked) Read(p []byte) (int, error) {
	if c.text == "" {
		return 0, io.EOF
	}
	size := len(c.text)
	if len(c.sizes) > 0 {
		size = min(size, 1+int(c.sizes[c.next%len(c.sizes)])<<4)
		c.next++
	}
	n := copy(p, bytes.NewBufferString(c.text[:size]).Bytes())
	c.text = c.text[n:]
	return n, nil
}
