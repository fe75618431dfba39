package crlog

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/observe/eventlog"
)

// The logs are those of a manager with two CRs: "good" succeeds, is paused and resumed,
// "bad" fails until it is changed.
func TestRealLogs(t *testing.T) {
	for name, test := range map[string]struct {
		file      string
		object    Object
		wantLines int
		wantIn    []string
	}{
		"console, with the block of a failed task": {"console.log", Object{"greeting", "shop", "bad"}, 21, []string{
			"\nshop/bad | TASK [greeting : Require a friendly word] ****\nshop/bad | fatal: [localhost]: FAILED!", "paused by its annotation", "run failed", "run succeeded",
		}},
		"console, of a CR that never failed": {"console.log", Object{"Greetings.fleet.ensign.io", AnyNamespace, "good"}, 25, []string{"paused by its annotation", "run succeeded"}},
		"json, where the block is a field":   {"json.log", Object{"greeting", "shop", "bad"}, 16, []string{`"block":"TASK [greeting`, "paused by its annotation", "run failed"}},
		"a namespace that has none of it":    {"console.log", Object{"greeting", "other", "bad"}, 0, nil},
		"another kind of the same name":      {"json.log", Object{"gadget", "shop", "bad"}, 0, nil},
		"a kind of another group":            {"console.log", Object{"greetings.example.com", "shop", "late"}, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			log, err := os.Open(filepath.Join("testdata", test.file))
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			var out bytes.Buffer
			if err := (&Printer{Out: &out}).Copy(test.object, log); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(out.String(), "\n"); got != test.wantLines {
				t.Errorf("want %d lines, got %d:\n%s", test.wantLines, got, out.String())
			}
			for _, want := range test.wantIn {
				if !strings.Contains(out.String(), want) {
					t.Errorf("want %q in\n%s", want, out.String())
				}
			}
			for line := range strings.Lines(out.String()) {
				if !strings.Contains(line, "/"+test.object.Name) {
					t.Errorf("%q is about something else", line)
				}
			}
		})
	}
}

const (
	about = "2026-11-24T11:40:05.637Z\tERROR\trun\ttask failed\t"
	ours  = about + `{"cr": "shop/a", "watch": "g.example.com/v1, Kind=Store"}`
	other = about + `{"cr": "shop/b", "watch": "g.example.com/v1, Kind=Store"}`
	twin  = about + `{"cr": "shop/a", "watch": "g.example.com/v1, Kind=Gadget"}`
	blunt = "2026-11-24T11:40:05.637Z\tINFO\tstarting"
)

func TestLinesThatBelongTogether(t *testing.T) {
	lines := func(object string) []string { return []string{object + " | TASK [t] ****", object + " | " + ours} }
	block := func(object string) []string {
		return append(append([]string{eventlog.Header("Ansible Task StdOut")}, lines(object)...), eventlog.BlockFooter)
	}
	join := func(parts ...[]string) (all []string) {
		for _, part := range parts {
			all = append(all, part...)
		}
		return all
	}
	for name, test := range map[string]struct{ log, want []string }{
		"a block follows its record":                        {join([]string{ours}, block("shop/a")), join([]string{ours}, lines("shop/a"))},
		"and is found after the record of another":          {join([]string{ours, other}, block("shop/a")), join([]string{ours}, lines("shop/a"))},
		"a block of a chart, too":                           {[]string{ours, eventlog.Header("Helm Chart"), "shop/a | x", eventlog.BlockFooter, other, eventlog.Header("Helm Chart"), "shop/b | x", eventlog.BlockFooter}, []string{ours, "shop/a | x"}},
		"the block of another has no line of ours":          {join([]string{ours, other}, block("shop/b"), []string{ours}), []string{ours, ours}},
		"the block of a namesake of another kind":           {join([]string{twin}, block("shop/a")), nil},
		"a stack trace belongs to the record before it":     {[]string{ours, "main.run", "\t/src/main.go:12", other, "main.run", "\t/src/main.go:12"}, []string{ours, "main.run", "\t/src/main.go:12"}},
		"other text does not":                               {[]string{ours, "some words of a library", "x"}, []string{ours}},
		"a record without fields is about nothing":          {[]string{ours, blunt}, []string{ours}},
		"a controller's record names the kind alone":        {[]string{blunt + "\t" + `{"kind": "Store", "object": "shop/a"}`, blunt + "\t" + `{"kind": "Gadget", "object": "shop/a"}`}, []string{blunt + "\t" + `{"kind": "Store", "object": "shop/a"}`}},
		"a record with neither kind nor watch":              {[]string{blunt + "\t" + `{"cr": "shop/a", "number": 1}`}, []string{blunt + "\t" + `{"cr": "shop/a", "number": 1}`}},
		"keys of other types":                               {[]string{`{"cr": 1, "object": ["shop/a"]}`}, nil},
		"a line that only begins like JSON is not a record": {[]string{`{"cr": "shop/a"`}, nil},
		"a record of epoch seconds, with another encoder":   {[]string{"1.7640e+09\tdebug\tm\t" + `{"cr": "shop/a"}`}, []string{"1.7640e+09\tdebug\tm\t" + `{"cr": "shop/a"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFilter(Object{Kind: "stores.g.example.com", Namespace: "shop", Name: "a"})
			var got []string
			for _, line := range test.log {
				if f.Keeps(line) {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Terminals and programs that record what they show add colours, carriage returns and lines of their own.
func TestALogThatATerminalRecorded(t *testing.T) {
	var out bytes.Buffer
	coloured := strings.Replace(ours, "ERROR", "\x1b[31mERROR\x1b[0m", 1)
	log := "Script started\r\n\x1b[1m" + coloured + "\x1b[0m\r\n\x1b[32m$ kubectl get pods\x1b[0m\r\n" + other + "\r\n"
	if err := (&Printer{Out: &out}).Copy(Object{Kind: "store", Namespace: "shop", Name: "a"}, strings.NewReader(log)); err != nil {
		t.Fatal(err)
	}
	if out.String() != ours+"\n" {
		t.Errorf("got %q", out.String())
	}
}

func TestACRThatIsInNoNamespace(t *testing.T) {
	f := NewFilter(Object{Kind: "store", Name: "a"})
	line := blunt + "\t" + `{"cr": "a"}`
	if !f.Keeps(line) {
		t.Error("it is left out")
	}
	if f.Keeps(ours) {
		t.Error("a namespaced namesake is kept")
	}
}

func TestNothingIsSentToTheTerminalThatItWouldObey(t *testing.T) {
	var out bytes.Buffer
	log := "2026-11-24T11:40:05.637Z\tINFO\tm\t" + `{"cr": "shop/a"}` + "\n\t\x1b]0;title\a\u202e\r\nlast"
	if err := (&Printer{Out: &out}).Copy(Object{Kind: "store", Namespace: "shop", Name: "a"}, strings.NewReader(log)); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\a\r\u202e") || !strings.Contains(out.String(), `\x1b]0;title`) || !strings.HasSuffix(out.String(), "\nlast\n") {
		t.Errorf("got %q", out.String())
	}
}

// What --log-format=pretty wrote is for a terminal, and has no kinds.
func TestALogThatIsNoneSaysSo(t *testing.T) {
	for log, want := range map[string]error{
		"":   nil,
		"\n": nil,
		"11:02:03 demo/hello  run of demo.example.com/v1, Kind=Greeting, generation 2: changed\n": ErrNoRecords,
		"some words\n" + twin: nil,
	} {
		if err := (&Printer{Out: io.Discard}).Copy(Object{Kind: "store", Namespace: "shop", Name: "a"}, strings.NewReader(log)); !errors.Is(err, want) {
			t.Errorf("%q: want %v, got %v", log, want, err)
		}
	}
}
