package order_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

func TestOnlyRecordsOfTheOrderCount(t *testing.T) {
	const nonce = 4711
	done := fmt.Sprintf(`{"nonce":%d,"done":true}`, nonce)
	for why, test := range map[string]struct {
		lines     []string
		want      *order.Record
		wantError bool
	}{
		"nothing was written":               {},
		"the last record of a success":      {lines: []string{`{"nonce":4711,"working":"install"}`, done}, want: &order.Record{Nonce: nonce, Done: true}},
		"that of a failure":                 {lines: []string{`{"nonce":4711,"done":true,"error":"no"}`}, want: &order.Record{Nonce: nonce, Done: true, Error: "no"}},
		"without its nonce it is none":      {lines: []string{`{"done":true}`, `{"nonce":1,"done":true}`}},
		"text is no record":                 {lines: []string{"done", "{", `"done"`, "", "null"}},
		"what follows the last is not read": {lines: []string{`{"nonce":4711,"done":true,"error":"no"}`, done}, want: &order.Record{Nonce: nonce, Done: true, Error: "no"}},
		"a line without an end":             {lines: []string{strings.Repeat("x", 1<<20)}, wantError: true},
	} {
		t.Run(why, func(t *testing.T) {
			got, err := order.Read(strings.NewReader(strings.Join(test.lines, "\n")), nonce, func(order.Record) {})
			if (err != nil) != test.wantError {
				t.Fatalf("got error %v", err)
			}
			if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestAnOrderKeepsItsNumbers(t *testing.T) {
	values := map[string]any{"big": int64(1_000_000), "list": []any{int64(9_007_199_254_740_993), 1.5, "2", true, nil}, "map": map[string]any{"n": int64(-1)}}
	text, err := json.Marshal(order.Order{Nonce: 1<<63 - 1, Values: values})
	if err != nil {
		t.Fatal(err)
	}
	got, err := order.Decode(text)
	if err != nil || got.Nonce != 1<<63-1 || !reflect.DeepEqual(got.Values, values) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := order.Decode([]byte(`{"values": {"a": 1e999}}`)); err == nil {
		t.Error("a number beyond all floats was taken")
	}
}

func TestALongErrorIsARecordStill(t *testing.T) {
	var text bytes.Buffer
	record := order.Record{Nonce: 7, Done: true, Error: strings.Repeat("\x00\"<", 1<<20)}
	if err := record.Write(&text); err != nil {
		t.Fatal(err)
	}
	got, err := order.Read(&text, 7, func(order.Record) {})
	if err != nil || got == nil || !strings.HasPrefix(got.Error, "\x00\"<") {
		t.Errorf("got %.80v, %v", got, err)
	}
}
