package main

import (
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/hack/bench/sides"
)

func TestTheMachineIsNamedWithWhatMatters(t *testing.T) {
	b := &bench{warm: sides.Figures{About: "Python 3.13"}, load: ", load 0.1 at the start"}
	if got := b.machine(); !strings.HasSuffix(got, ", Python 3.13, load 0.1 at the start") || !strings.Contains(got, "cores") {
		t.Errorf("got %q", got)
	}
}

func TestDescribeLoad(t *testing.T) {
	cases := map[string]struct {
		loadavg string
		want    string
	}{
		"a quiet machine":       {"0.12 0.30 0.40 1/234 5678\n", ", load 0.1 at the start"},
		"half of it is no harm": {"1.00 0.30 0.40 1/234 5678\n", ", load 1.0 at the start"},
		"others work too":       {"2.75 0.30 0.40 4/234 5678\n", ", load 2.8 at the start: BUSY, so that times are rough"},
		"a file without a load": {"\n", ""},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if got := describeLoad(c.loadavg, 2); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
