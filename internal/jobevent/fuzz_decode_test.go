package jobevent_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/ensign-operator/ensign/internal/jobevent"
	"github.com/ensign-operator/ensign/internal/jobevent/jsonline"
)

// addCaptures adds what the real ansible-runner printed in some runs.
func addCaptures(f *testing.F, add func(stream []byte)) {
	f.Helper()
	paths, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(paths) == 0 {
		f.Fatal("no captures", err)
	}
	for _, path := range paths {
		stream, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		add(stream)
	}
}

// decoded is what Decode made of a stream.
type decoded struct {
	Events []jobevent.Event
	Output []string
}

// FuzzDecode holds Decode against encoding/json: exactly the lines that carry
// the run's nonce are events, and they say what stands there.
func FuzzDecode(f *testing.F) {
	addCaptures(f, func(stream []byte) { f.Add(stream, true) })
	f.Fuzz(func(t *testing.T, stream []byte, bytewise bool) {
		if len(stream) > 64<<10 {
			return // What is cut is for the tests of jsonline.
		}
		got := decodeAll(t, stream, false)
		if again := decodeAll(t, stream, bytewise); !reflect.DeepEqual(got, again) {
			t.Fatalf("bytewise %v: %+v; at once %+v", bytewise, again, got)
		}
		for _, line := range got.Output {
			if len(line) > jsonline.MaxText+len(jsonline.CutMark) || !utf8.ValidString(line) || strings.Contains(line, "\n") {
				t.Fatalf("%d bytes are put out as one line: %.200q", len(line), line)
			}
		}
		events := got.Events
		for line := range bytes.Lines(stream) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			want, standard := plainEvent(line)
			switch {
			case !standard && len(events) > 0 && strings.Contains(string(line), strconv.Itoa(nonce)):
				return // Python writes more than JSON; which lines became events cannot be told from here.
			case want == nil:
				continue
			case len(events) == 0:
				t.Fatalf("%.300q is no event, but carries the nonce", line)
			}
			checkEvent(t, line, want, events[0])
			events = events[1:]
		}
		if len(events) > 0 {
			t.Fatalf("an event was made of nothing: %+v", events[0])
		}
	})
}

func decodeAll(t *testing.T, stream []byte, bytewise bool) decoded {
	t.Helper()
	r := iotest.HalfReader(bytes.NewReader(stream))
	if bytewise {
		r = iotest.OneByteReader(bytes.NewReader(stream))
	}
	var d decoded
	err := jobevent.Decode(r, nonce, jobevent.Handler{
		Event:  func(e jobevent.Event) { d.Events = append(d.Events, e) },
		Output: func(line string) { d.Output = append(d.Output, line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// plainEvent reads a line with encoding/json: nil for one that is no event of the
// run. It cannot tell of a line that is no standard JSON.
func plainEvent(line []byte) (members map[string]any, standard bool) {
	if !json.Valid(line) || !utf8.Valid(line) {
		return nil, false
	}
	times := topLevel(line)
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if d.Decode(&members) != nil || times["job_id"] != 1 || times["event"] != 1 || times["event_data"] > 1 {
		return nil, true
	}
	id, _ := members["job_id"].(json.Number)
	kind, _ := members["event"].(string)
	switch kind {
	case "", "verbose", "debug", "deprecated", "warning", "system_warning", "error":
		return nil, true
	}
	if id.String() != strconv.Itoa(nonce) {
		return nil, true
	}
	return members, true
}

// topLevel counts how often an object has each of its keys.
func topLevel(line []byte) map[string]int {
	times := map[string]int{}
	d := json.NewDecoder(bytes.NewReader(line))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return times
	}
	for d.More() {
		key, _ := d.Token()
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
		times[key.(string)]++
	}
	return times
}

func checkEvent(t *testing.T, line []byte, want map[string]any, got jobevent.Event) {
	t.Helper()
	data, _ := want["event_data"].(map[string]any)
	if resolved, said := data["resolved_action"]; said && (resolved == "" || got.Resolved == "") {
		hideAction(data)
	}
	for _, text := range []struct {
		got   string
		value any
	}{
		{string(got.Kind), want["event"]}, {got.UUID, want["uuid"]}, {got.Play, data["play"]}, {got.Task, data["task"]},
		{got.Role, data["role"]}, {got.Host, data["host"]}, {got.Place, data["task_path"]}, {got.Action, data["task_action"]}, {got.Resolved, data["resolved_action"]},
	} {
		value, _ := text.value.(string)
		kept, cut := strings.CutSuffix(text.got, jsonline.CutMark)
		if text.got != value && !(cut && strings.HasPrefix(value, kept) && len(value) > jsonline.MaxName) {
			t.Errorf("%.300q: %.200q was read for %.200q", line, text.got, value)
		}
	}
	if ignore, _ := data["ignore_errors"].(bool); ignore != got.IgnoreErrors {
		t.Errorf("%.300q: errors are ignored: %v", line, got.IgnoreErrors)
	}
	result, _ := data["res"].(map[string]any)
	if result != nil && len(result) == 0 {
		result["msg"] = got.Result["msg"] // It says that ansible-runner has left the result out.
	}
	if !reflect.DeepEqual(result, got.Result) && !strings.Contains(render(got.Result), jsonline.CutKey) {
		t.Errorf("%.300q: the result was read as %.500v", line, got.Result)
	}
	if (got.HostStats != nil) != (got.Kind == jobevent.Stats) {
		t.Errorf("%.300q: stats %+v", line, got.HostStats)
	}
	if got.Duration < 0 || got.Duration > 11*366*24*time.Hour || got.Created.Location() != time.UTC {
		t.Errorf("%.300q: took %v, created %v", line, got.Duration, got.Created)
	}
}

// hideAction is what becomes of an action that Ansible has not resolved.
func hideAction(data map[string]any) {
	const hidden = "(an action that was not resolved)"
	if data["task"] == data["task_action"] || data["task"] == nil && data["task_action"] == "" {
		data["task"] = hidden
	}
	data["task_action"] = hidden
}

func render(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}
