package main

import (
	"testing"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
)

func TestADryRunIsNeitherReadNorWrite(t *testing.T) {
	got := countRequests([]apiproxy.Request{
		{Verb: "get"}, {Verb: "list"}, {Verb: "watch"}, {Verb: "patch", Query: map[string][]string{"dryRun": {"All"}}}, {Verb: "patch"}, {Verb: "create"},
	})
	if want := (requestCounts{reads: 2, dryRuns: 1, writes: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
