package safevars

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/harness/cores"
)

// batch is how many documents are held in memory at a time.
const batch = 500

func TestAnsibleReadsWhatTheObjectSays(t *testing.T) {
	const n = defaultDocuments / 2 // With each of the two parsers.
	onEachParser(t, func(t *testing.T, c cores.Core, parser string) {
		r, texts := newReader(t, c, parser), 0
		source := documentSource{rand: rand.New(rand.NewPCG(1, uint64(len(parser))))}
		for done := 0; done < n; done += batch {
			requests, wants := source.requests(t, min(batch, n-done))
			for i, got := range r.read(t, requests...) {
				if got.Error != "" || !reflect.DeepEqual(wants[i], got.Value) {
					t.Fatalf("document %d: %s %s\n%s\n%s", done+i, got.Error, got.Said, cmp.Diff(wants[i], got.Value), requests[i].Text)
				}
				texts += bytes.Count(requests[i].Text, []byte(`{"__ansible_unsafe":`))
			}
		}
		t.Logf("%d documents with %d texts: all equal in value, type and trust", n, texts)
	})
}

// A difference in a value, a type or a trust is seen.
func TestTheComparisonSeesEveryDifference(t *testing.T) {
	c := cores.Newest(t)
	r := newReader(t, c, "libyaml")
	want := tree(map[string]any{"a": []any{"text", int64(1)}}, false)
	for why, test := range map[string]struct {
		text string
		want bool
	}{
		"the same":             {`{"a": [{"__ansible_unsafe": "text"}, 1]}`, true},
		"another text":         {`{"a": [{"__ansible_unsafe": "Text"}, 1]}`, false},
		"a trusted text":       {`{"a": ["text", 1]}`, false},
		"a number as a text":   {`{"a": [{"__ansible_unsafe": "text"}, "1"]}`, false},
		"a float":              {`{"a": [{"__ansible_unsafe": "text"}, 1.0]}`, false},
		"a key that was added": {`{"a": [{"__ansible_unsafe": "text"}, 1], "b": null}`, false},
	} {
		t.Run(why, func(t *testing.T) {
			got := r.read(t, request{Text: []byte("\t\n" + test.text)})[0]
			if got.Error != "" || reflect.DeepEqual(want, got.Value) != test.want {
				t.Errorf("got %s %v, want equal to %v: %v", got.Error, got.Value, want, test.want)
			}
		})
	}
}

// secret starts every text and every key of the documents below, so that one of
// them is recognised in an error.
const secret = "sEcReT"

func TestAnsibleRefusesWhatItsDecoderGivesUp(t *testing.T) {
	onEachParser(t, func(t *testing.T, c cores.Core, parser string) {
		r := newReader(t, c, parser)
		source := documentSource{rand: rand.New(rand.NewPCG(3, uint64(len(parser)))), prefix: secret}
		for done := 0; done < brokenDocuments; done += batch {
			var requests []request
			for range min(batch, brokenDocuments-done) {
				text := encode(t, source.object(t), thing(true))
				requests = append(requests, request{Text: text, Mode: "yaml"}, request{Text: broken(source.rand, text)})
			}
			for i, got := range r.read(t, requests...) {
				if got.Error == "" {
					t.Fatalf("document %d was read:\n%s", i, requests[i].Text)
				}
				if !strings.Contains(got.Said, "[ERROR]") || strings.Contains(got.Said, secret) {
					t.Fatalf("document %d: got %q, want an error without a text of the document", i, got.Said)
				}
			}
		}
		t.Logf("%d documents with a decoder that gives up, and %d damaged ones: all refused without a word of theirs", brokenDocuments, brokenDocuments)
	})
}

// What each of the two bytes in front is for; this shows that the test above can
// see it where they are missing.
func TestAnsibleReadsUnprotectedTextAsYAML(t *testing.T) {
	onEachParser(t, func(t *testing.T, c cores.Core, parser string) {
		r := newReader(t, c, parser)
		text := bytes.TrimPrefix(encode(t, map[string]any{"spec": map[string]any{"a": "{{ 6*7 }}" + secret}}, thing(true)), []byte("\t\n"))
		got := r.read(t,
			request{Text: text, Mode: "yaml"},
			request{Text: slices.Concat([]byte("\n"), text), Mode: "yaml"},
			request{Text: slices.Concat([]byte("\t"), text), Mode: "yaml"},
		)
		want := `"a":{"map":{"__ansible_unsafe":{"str":"{{ 6*7 }}` + secret + `","trusted":true}},"trusted keys":true}`
		for _, unprotected := range got[:2] {
			if read, _ := json.Marshal(unprotected.Value); !strings.Contains(string(read), want) {
				t.Errorf("without the TAB, got %s %s, want %s in it", unprotected.Error, read, want)
			}
		}
		if got[2].Error == "" || !strings.Contains(got[2].Said, secret) {
			t.Errorf("without the LF, got %s %q, want an error that shows the values", got[2].Error, got[2].Said)
		}
	})
}

// broken changes a text so that no JSON reader takes it.
func broken(random *rand.Rand, text []byte) []byte {
	for {
		at := 2 + random.IntN(len(text)-2)
		var changed []byte
		switch random.IntN(4) {
		case 0:
			changed = slices.Clone(text[:at])
		case 1:
			changed = slices.Insert(slices.Clone(text), at, []byte(hostile()[random.IntN(len(hostile()))])...)
		case 2:
			changed = slices.Delete(slices.Clone(text), at, at+1)
		case 3:
			// JSON, but not what marks a text.
			return bytes.Replace(text, []byte(`{"__ansible_unsafe":`), []byte(`{"__ansible_unsafe":1,"x":`), 1)
		}
		if !json.Valid(changed) {
			return changed
		}
	}
}
