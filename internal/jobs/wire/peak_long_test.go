//go:build long

package wire

import (
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/peak"
)

func TestPeakMemory(t *testing.T) {
	events := func(many string, n int) func() func() error {
		return func() func() error {
			body := `{"First":1,"Events":[` + strings.Repeat(many, n) + `{}]}`
			return func() error {
				_, err := DecodeEvents(strings.NewReader(body))
				return err
			}
		}
	}
	peak.Measure(t, []peak.Input{
		{Name: "events: most", MiB: 300, Make: events(`{"Result":{"":{"":0}}},`, maxEvents-1)},
		{Name: "events: more", MiB: 50, Refused: true, Make: events(`{},`, MaxEventsBytes/3-20)},
		{Name: "events: most maps", MiB: 300, Make: events(`{"Result":{"":[`+strings.Repeat(`{"":0},`, MaxEventsBytes/7-20)+`0]}},`, 1)},
		{Name: "result: most failures", MiB: 150, Make: func() func() error {
			body := `{"RunID":"r","Outcome":{"Verdict":"Failed","Reason":"r"},"Ended":"2026-01-02T03:04:05Z","Detail":{"Failed":[` + strings.Repeat(`{},`, MaxResultBytes/3-60) + `{}]}}`
			return func() error {
				_, err := DecodeResult(strings.NewReader(body))
				return err
			}
		}},
	})
}
