package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/pkg/content"
)

func someResult(message string) Result {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	return Result{RunID: "run-1", Events: 12, Result: run.Result{
		Outcome: content.Outcome{Verdict: content.Failed, Reason: content.ReasonFailed, Message: message},
		Detail:  json.RawMessage(`{"ok":3,"why":"` + strings.Repeat("x", 9000) + `"}`), Brief: json.RawMessage(`{"ok":3}`), Started: at, Ended: at.Add(time.Second),
	}}
}

func TestATerminationMessageFitsAndIsTheResult(t *testing.T) {
	for why, message := range map[string]string{
		"a short message":           "boom",
		"one that barely fits":      strings.Repeat("x", 3400),
		"one that is too long":      strings.Repeat("x", 4096),
		"of characters with escape": strings.Repeat("\"\\\n", 1365),
		"of long characters":        strings.Repeat("€", 1365),
		"no UTF-8":                  strings.Repeat("\xff", 4096),
	} {
		t.Run(why, func(t *testing.T) {
			want := someResult(message)
			encoded, err := EncodeTermination(want)
			if err != nil || len(encoded) > 4096 {
				t.Fatalf("%d bytes, %v", len(encoded), err)
			}
			got, err := DecodeTermination(encoded)
			if err != nil || !utf8.ValidString(got.Outcome.Message) {
				t.Fatalf("got %+v, %v", got, err)
			}
			if len(message) < 3500 && got.Outcome.Message != message || len(message) > 3500 && !strings.HasSuffix(got.Outcome.Message, "… [cut]") {
				t.Errorf("got the message %q", got.Outcome.Message)
			}
			want.Detail, want.Brief, got.Outcome.Message = want.Brief, nil, want.Outcome.Message
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A detail without a brief form is whole there, or there is no message.
func TestATerminationMessageHasNoPartOfADetail(t *testing.T) {
	result := someResult("boom")
	result.Brief = nil
	if text, err := EncodeTermination(result); !errors.Is(err, errLong) {
		t.Errorf("got %q, %v", text, err)
	}
	result.Detail = json.RawMessage(`{"short":true}`)
	text, err := EncodeTermination(result)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeTermination(text); err != nil || string(got.Detail) != string(result.Detail) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// What only a manager may say of a run is not an agent's to say.
func TestAResultDoesNotSayWhereItIsFrom(t *testing.T) {
	result := someResult("boom")
	result.Remote, result.Detached = true, true
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	text = append([]byte(`{"Remote":true,"Detached":true,"Brief":{},`), text[1:]...)
	if got, err := DecodeResult(bytes.NewReader(text)); err != nil || got.Remote || got.Detached || got.Brief != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A message that the kubelet or the content has cut, or that nobody of ours wrote, is no result:
// least of all a success.
func TestOnlyAWholeTerminationMessageIsAResult(t *testing.T) {
	whole, err := EncodeTermination(someResult("boom"))
	if err != nil {
		t.Fatal(err)
	}
	for length := range bytes.TrimSpace(whole) {
		if r, err := DecodeTermination(whole[:length]); err == nil {
			t.Errorf("%q is %+v", whole[:length], r)
		}
	}
	for why, text := range map[string]string{
		"more after it":    string(whole) + "{}",
		"an unknown field": strings.Replace(string(whole), `"RunID"`, `"Nope":1,"RunID"`, 1),
		"no verdict":       strings.Replace(string(whole), "Failed", "Done", 1),
		"no run":           strings.Replace(string(whole), "run-1", "", 1),
		"an empty object":  "{}",
		"null":             "null",
		"a log":            "Error: no space left",
	} {
		if r, err := DecodeTermination([]byte(text)); err == nil {
			t.Errorf("%s: got %+v", why, r)
		}
	}
}

func TestEventsKeepTheirNumbers(t *testing.T) {
	want := Events{First: 7, Events: []json.RawMessage{json.RawMessage(`{"n":12345678901234567890,"l":[1.50,null,true]}`), json.RawMessage(`"text"`)}}
	encoded, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeEvents(bytes.NewReader(encoded))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for _, bad := range []string{`{"First":0}`, `{"First":-1}`, `{"First":1}x`, `[]`, ``, `{"First":1,"Events":[{]}`, `{"First":1,"Events":{}}`, `{"First":1,"Events":[{}` + strings.Repeat(",{}", maxEvents) + `]}`} {
		if got, err := DecodeEvents(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is %+v", bad, got)
		}
	}
}

// FuzzDecode sends a manager what an agent would not.
func FuzzDecode(f *testing.F) {
	for _, seed := range []any{someResult("boom"), Events{First: 1, Events: []json.RawMessage{json.RawMessage(`{"a":1}`)}}} {
		encoded, err := json.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if events, err := DecodeEvents(bytes.NewReader(body)); err == nil && (events.First < 1 || len(events.Events) > maxEvents) {
			t.Errorf("%d events begin with %d", len(events.Events), events.First)
		}
		result, err := DecodeResult(bytes.NewReader(body))
		if err != nil {
			return
		}
		encoded, err := EncodeTermination(result)
		if errors.Is(err, errLong) && len(result.RunID)+len(result.Outcome.Reason)+len(result.Detail) > 256 {
			return
		}
		if err != nil || len(encoded) > 4096 {
			t.Fatalf("%d bytes, %v", len(encoded), err)
		}
		if again, err := DecodeTermination(encoded); err != nil || again.Outcome.Verdict != result.Outcome.Verdict {
			t.Errorf("%q became %+v, %v", encoded, again, err)
		}
	})
}
