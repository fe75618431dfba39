package manual

import (
	"runtime/debug"
	"testing"
)

func TestURL(t *testing.T) {
	built := func(version string) *debug.BuildInfo { return &debug.BuildInfo{Main: debug.Module{Version: version}} }
	for why, c := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"a release":            {built("v0.2.0"), "https://github.com/ensign-operator/ensign/blob/v0.2.0/docs/a.md#b"},
		"a commit":             {built("v0.2.1-0.20261126050000-abcdefabcdef"), "https://github.com/ensign-operator/ensign/blob/main/docs/a.md#b"},
		"a changed tree":       {built("v0.2.0+dirty"), "https://github.com/ensign-operator/ensign/blob/main/docs/a.md#b"},
		"nobody knows":         {built("(devel)"), "https://github.com/ensign-operator/ensign/blob/main/docs/a.md#b"},
		"built without a word": {nil, "https://github.com/ensign-operator/ensign/blob/main/docs/a.md#b"},
	} {
		t.Run(why, func(t *testing.T) {
			if got := url("a.md#b", c.info); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
