package main

import "testing"

func TestParseSize(t *testing.T) {
	const status = "Name:\tmanager\nVmHWM:\t   65536 kB\nVmRSS:\t   61440 kB\nThreads:\t9\nVmBad:\tmany kB\n"
	cases := map[string]struct {
		field   string
		want    float64
		wantErr bool
	}{
		"what it has now":                     {field: "VmRSS", want: 60},
		"the most it had":                     {field: "VmHWM", want: 64},
		"a zombie has no such line":           {field: "VmSwap", wantErr: true},
		"the beginning of a name is no name":  {field: "Vm", wantErr: true},
		"a count is no size":                  {field: "Threads", wantErr: true},
		"a size that is no number is no size": {field: "VmBad", wantErr: true},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			got, err := parseSize(status, c.field)
			if (err != nil) != c.wantErr || got != c.want {
				t.Errorf("got %v, error %v", got, err)
			}
		})
	}
}
