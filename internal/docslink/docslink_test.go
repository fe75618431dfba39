package docslink

import (
	"runtime/debug"
	"testing"
)

func TestURL(t *testing.T) {
	built := func(version string) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: module, Version: version}}
	}
	with := func(dependency debug.Module) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: "example.com/shop", Version: "v7.0.0"}, Deps: []*debug.Module{{Path: "sigs.k8s.io/yaml", Version: "v1.0.0"}, &dependency}}
	}
	for why, c := range map[string]struct {
		linked string
		info   *debug.BuildInfo
		want   string
	}{
		"go install of a release":                   {"", built("v0.2.0"), "v0.2.0"},
		"the programs and images of a release":      {"v0.2.0", built("(devel)"), "v0.2.0"},
		"a commit after a release":                  {"v0.2.0-4-gabcdef0", built("(devel)"), "main"},
		"a commit":                                  {"", built("v0.2.1-0.20261126050000-abcdefabcdef"), "main"},
		"a changed tree":                            {"", built("v0.2.0+dirty"), "main"},
		"nobody knows":                              {"dev", built("(devel)"), "main"},
		"built without a word":                      {"", nil, "main"},
		"a program of others, made with a release":  {"", with(debug.Module{Path: module, Version: "v0.2.0"}), "v0.2.0"},
		"a program of others, made with a checkout": {"", with(debug.Module{Path: module, Version: "v0.2.0", Replace: &debug.Module{Path: "../ensign"}}), "main"},
	} {
		t.Run(why, func(t *testing.T) {
			if got, want := root(c.linked, c.info), "https://github.com/ensign-operator/ensign/blob/"+c.want+"/"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	if got, want := Page("a.md#b").URL(), Root()+"docs/a.md#b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
