//go:build long

package usermetrics

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/peak"
)

func TestPeakMemory(t *testing.T) {
	reads := func(size int) func() func() error {
		return func() func() error {
			body := `{"name":"a","counter":{},"x":[` + strings.Repeat(`{"":0},`, size/7) + `0]}`
			return func() error {
				_, err := parse(http.MaxBytesReader(nil, io.NopCloser(strings.NewReader(body)), maxBodyBytes))
				return err
			}
		}
	}
	peak.Measure(t, []peak.Input{
		{Name: "metrics: most", MiB: 5, Make: reads(maxBodyBytes - 100)},
		{Name: "metrics: more", MiB: 5, Refused: true, Make: reads(maxBodyBytes)},
	})
}
