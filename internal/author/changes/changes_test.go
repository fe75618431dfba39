package changes

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/chart/engine"
	"github.com/ensign-operator/ensign/internal/chart/objects"
	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/observe/terminal"
)

func resources() []Resource {
	return []Resource{
		{Resource: "hello/same", Namespace: "ns", Preview: engine.Preview{Release: "ns/same"}},
		{Resource: "hello/a", Namespace: "ns", Preview: engine.Preview{
			Release: "ns/a", Action: "upgrade", Revision: 3, Hooks: []order.Hook{{Event: "pre-upgrade", Name: "Job j"}},
			Changes: []objects.Change{
				{Name: "ConfigMap ns/a", Kind: "update", Fields: strings.Split(strings.Repeat("/a ", 9)+"/b", " "), Random: []string{"/b"}, Diff: "--- live\n+++ after\n@@ -1 +1 @@\n-a: b\n+a: \x1b\n c: d\n"},
				{Name: "Job ns/j", Kind: "update", Error: "immutable"},
				{Name: "Secret ns/s", Kind: "keep", Note: "it is kept"},
			},
		}},
		{Resource: "hello/b", Error: "no chart"},
	}
}

func TestPrint(t *testing.T) {
	short := "hello/a -n ns: upgrade of release ns/a, revision 3\n  ~ ConfigMap ns/a: /a, /a, /a, /a, /a, /a, /a, /a and 2 more\n    another value at each rendering: /b\n"
	diff := "    @@ -1 +1 @@\n    -a: b\n    +a: \\x1b\n     c: d\n"
	rest := "  ~ Job ns/j\n    fails: immutable\n  = Secret ns/s\n    it is kept\n  > pre-upgrade: hook Job j runs\nhello/b: no chart\n"
	for summary, want := range map[bool]string{false: short + diff + rest, true: short + rest} {
		var out strings.Builder
		for _, r := range resources() {
			Printer{Out: &out, Summary: summary}.Print(r)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	var out strings.Builder
	Printer{Out: &out, Palette: terminal.Palette{On: true}}.Print(resources()[1])
	for _, want := range []string{"\x1b[31m    -a: b\x1b[0m\n", "\x1b[32m    +a: \\x1b\x1b[0m\n", "\x1b[31m    fails: immutable\x1b[0m\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestTotal(t *testing.T) {
	if got, want := Total(resources()), "2 update, 1 keep, 1 hook, 1 would fail"; got != want {
		t.Errorf("got %q", got)
	}
	if got := Total(nil); got != "no differences" {
		t.Errorf("got %q", got)
	}
	for i, want := range [][2]bool{{false, false}, {true, true}, {false, true}} {
		if r := resources()[i]; r.Differs() != want[0] || r.Fails() != want[1] {
			t.Errorf("%s: differs %t, fails %t", r.Resource, r.Differs(), r.Fails())
		}
	}
}
