package order_test

import (
	"bytes"
	"fmt"
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
