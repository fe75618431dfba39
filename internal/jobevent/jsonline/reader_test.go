package jsonline_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/jobevent/jsonline"
)

type result struct {
	Value any
	Done  bool
}

func readAll(t *testing.T, r io.Reader) []result {
	t.Helper()
	lines := jsonline.NewReader(r)
	var got []result
	for lines.Next() {
		value := lines.Value()
		got = append(got, result{value, lines.Done()})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestValue(t *testing.T) {
	cases := map[string]struct {
		line string
		want any
	}{
		"numbers stay as they are written, no float rounds them": {`[9223372036854775807, 1.50, -0, 1e400]`,
			[]any{json.Number("9223372036854775807"), json.Number("1.50"), json.Number("-0"), json.Number("1e400")}},
		"Python writes NaN and infinities":                {`[NaN, Infinity, -Infinity]`, []any{"NaN", "Infinity", "-Infinity"}},
		"a surrogate pair is one character":               {`"\ud83d\ude00"`, "😀"},
		"half a pair is no character":                     {`"\ud83d!\ude00"`, "\uFFFD!\uFFFD"},
		"two first halves and a second make one of each":  {`"\ud83d\ud83d\ude00"`, "\uFFFD😀"},
		"every escape is known":                           {`"\"\\\/\b\f\n\r\t\u00e9\u00E9"`, "\"\\/\b\f\n\r\téé"},
		"broken UTF-8 becomes valid":                      {"\"a\xff\xc3\"", "a\uFFFD"},
		"an escaped NUL is a character like others":       {`"\u0000"`, "\x00"},
		"empty containers are not nil":                    {`{"a":{},"b":[]}`, map[string]any{"a": map[string]any{}, "b": []any{}}},
		"white space and a carriage return do not matter": {" { \"a\" : [ 1 ,\ttrue , null ] } \r", map[string]any{"a": []any{json.Number("1"), true, nil}}},
		"a number of absurd length is cut and no number":  {strings.Repeat("7", 100), strings.Repeat("7", 64) + jsonline.CutMark},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			want := []result{{c.want, true}}
			if diff := cmp.Diff(want, readAll(t, strings.NewReader(c.line+"\n"))); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(want, readAll(t, iotest.OneByteReader(strings.NewReader(c.line)))); diff != "" {
				t.Errorf("byte by byte, without a line feed: %s", diff)
			}
		})
	}
}

func TestALevelTooDeepIsCut(t *testing.T) {
	line := `{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `,"b":1}`
	want := []result{{map[string]any{"a": nested(63, jsonline.CutMark), "b": json.Number("1")}, true}}
	// cmp takes exponential time for nested lists.
	if got := readAll(t, strings.NewReader(line)); !reflect.DeepEqual(want, got) {
		t.Errorf("got %v", got)
	}
}

func nested(levels int, inner any) any {
	for range levels {
		inner = []any{inner}
	}
	return inner
}

func TestNotJSON(t *testing.T) {
	for why, line := range map[string]string{
		"nothing":                       ``,
		"plain text":                    `PLAY [all] ****`,
		"two values":                    `{} {}`,
		"an object that does not end":   `{"a":1`,
		"a string that does not end":    `"a`,
		"a raw control character":       "\"a\x01b\"",
		"a raw NUL":                     "{\"a\":\x00}",
		"a missing comma":               `{"a":1 "b":2}`,
		"a comma too many":              `[1,]`,
		"a key that is no string":       `{a:1}`,
		"an escape that does not exist": `"\x"`,
		"an escape that is too short":   `"\u12"`,
		"a word":                        `nil`,
		"a stray bracket":               `]`,
	} {
		t.Run(why, func(t *testing.T) {
			for _, r := range readAll(t, strings.NewReader(line+"\n")) {
				if r.Done {
					t.Errorf("%q passes for JSON: %v", line, r.Value)
				}
			}
			lines := jsonline.NewReader(strings.NewReader(line + "\n"))
			if lines.Next(); string(lines.Beginning()) != line {
				t.Errorf("the line reads %q", lines.Beginning())
			}
		})
	}
}

func TestStringsAreCutBetweenCharacters(t *testing.T) {
	for why, unit := range map[string]string{
		"ASCII":                 "a",
		"a raw character":       "€",
		"a raw pair of letters": "é",
		"an escape":             `\n`,
		"an escaped character":  `\u20ac`,
		"an escaped pair":       `\ud83d\ude00`,
		"an escaped quote":      `\"`,
	} {
		t.Run(why, func(t *testing.T) {
			for shift := range 7 {
				text := strings.Repeat("x", shift) + strings.Repeat(unit, jsonline.MaxText+1)
				got := readAll(t, strings.NewReader(fmt.Sprintf("{\"a\":\"%s\",\"b\":1}\n", text)))
				object, _ := got[0].Value.(map[string]any)
				value, _ := object["a"].(string)
				kept, marked := strings.CutSuffix(value, jsonline.CutMark)
				var whole string
				if err := json.Unmarshal([]byte(`"`+text+`"`), &whole); err != nil {
					t.Fatal(err)
				}
				if !got[0].Done || object["b"] != json.Number("1") || !marked || !utf8.ValidString(kept) ||
					!strings.HasPrefix(whole, kept) || len(kept) > jsonline.MaxText || len(kept) < jsonline.MaxText-utf8.UTFMax {
					t.Fatalf("shift %d: %d bytes kept, marked %v, done %v", shift, len(kept), marked, got[0].Done)
				}
			}
		})
	}
}

func TestLargeValuesAreCutAndSaySo(t *testing.T) {
	for why, part := range map[string]string{
		"many small strings": `"s"`,
		"many empty objects": `{}`,
		"many numbers":       `1`,
		"many long strings":  `"` + strings.Repeat("s", 9000) + `"`,
	} {
		t.Run(why, func(t *testing.T) {
			line := `{"list":[` + strings.Repeat(part+",", 4<<20/(len(part)+1)) + part + `],"lost":{"a":1}}`
			got := readAll(t, strings.NewReader(line+"\n"+`{"next":1}`))
			object, _ := got[0].Value.(map[string]any)
			list, _ := object["list"].([]any)
			if len(list) < 2 || len(list) > 10_000 || list[len(list)-1] != jsonline.CutMark {
				t.Errorf("%d elements kept, the last is %.20v", len(list), list[len(list)-1])
			}
			if object[jsonline.CutKey] != jsonline.CutMark || object["lost"] != nil || !got[0].Done {
				t.Errorf("the object does not say that it was cut: %d members, done %v", len(object), got[0].Done)
			}
			if diff := cmp.Diff(result{map[string]any{"next": json.Number("1")}, true}, got[1]); diff != "" {
				t.Errorf("the next line: %s", diff)
			}
		})
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 300_000)
	lines := jsonline.NewReader(iotest.HalfReader(strings.NewReader("a\n\n" + long + "\nb\r\n" + long)))
	var got []string
	for lines.Next() {
		if lines.Skip(); lines.Done() {
			t.Error("text passes for JSON")
		}
		got = append(got, string(lines.Beginning()))
	}
	if diff := cmp.Diff([]string{"a", "", long[:64<<10], "b\r", long[:64<<10]}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAReadersErrorIsKept(t *testing.T) {
	broken := errors.New("broken pipe")
	lines := jsonline.NewReader(io.MultiReader(strings.NewReader("{}\nhalf"), iotest.ErrReader(broken)))
	n := 0
	for lines.Next() {
		n++
	}
	if n != 2 || !errors.Is(lines.Err(), broken) {
		t.Errorf("%d lines, %v", n, lines.Err())
	}
	stuck := jsonline.NewReader(stuckReader{})
	if stuck.Next() || !errors.Is(stuck.Err(), io.ErrNoProgress) {
		t.Errorf("a reader that gives nothing: %v", stuck.Err())
	}
}

type stuckReader struct{}

func (stuckReader) Read([]byte) (int, error) { return 0, nil }

func TestMemoryDoesNotDependOnTheLine(t *testing.T) {
	const size = 100 << 20 // of which the slower shapes take a tenth
	for why, c := range map[string]struct {
		start, unit, end string
		size             int
	}{
		"one string":         {`{"a":"`, "x", `"}`, size},
		"escapes":            {`{"a":"`, `\ud83d\ude00`, `"}`, size / 10},
		"small strings":      {`{"a":[""`, `,"abcdefgh"`, `]}`, size / 10},
		"empty objects":      {`{"a":[""`, `,{}`, `]}`, size / 10},
		"members":            {`{"a":{"":1`, `,"k":{"l":2}`, `}}`, size / 10},
		"brackets":           {`{"a":`, `[`, ``, size / 10},
		"text":               {``, `text `, ``, size / 10},
		"keys of the object": {`{"a":1`, `,"k":2`, `}`, size / 10},
		"one number":         {`[`, `7`, `]`, size / 10},
	} {
		t.Run(why, func(t *testing.T) {
			var before, after runtime.MemStats
			line := io.MultiReader(strings.NewReader(c.start), io.LimitReader(&repeat{unit: c.unit}, int64(c.size/len(c.unit)*len(c.unit))), strings.NewReader(c.end))
			runtime.ReadMemStats(&before)
			lines := jsonline.NewReader(line)
			for lines.Next() {
				lines.Object(func([]byte) { lines.Value() })
			}
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > 2<<20 {
				t.Errorf("%d bytes were allocated in all for one line", got)
			}
		})
	}
}

// repeat gives its unit without end.
type repeat struct {
	unit string
	at   int
}

func (r *repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.unit[r.at]
		r.at = (r.at + 1) % len(r.unit)
	}
	return len(p), nil
}
