package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWhatARollOutIsAt(t *testing.T) {
	row := func(kind, version, digest string) Row {
		return Row{APIVersion: "shop.example.com/v1", Kind: kind, Version: version, Digest: digest}
	}
	for name, test := range map[string]struct {
		rows []Row
		want string
	}{
		"most first, and what is unknown last": {
			[]Row{row("Store", "", ""), row("Store", "1.3.9", "aaa"), row("Store", "", ""), row("Store", "1.4.0", "bbb"), row("Store", "1.4.0", "bbb"), row("Store", "", "")},
			"Store: 2 ran 1.4.0 (bbb), 1 ran 1.3.9 (aaa), 3 ran an unknown version or none\n",
		},
		"content that stayed the same in a new operator": {[]Row{row("Store", "1.4.0", "aaa"), row("Store", "1.3.9", "aaa")}, "Store: 2 ran 1.3.9, 1.4.0 (aaa)\n"},
		"a name that stayed the same with new content":   {[]Row{row("Store", "dev", "aaa"), row("Store", "dev", "bbb")}, "Store: 1 ran dev (aaa), 1 ran dev (bbb)\n"},
		"names alone":                  {[]Row{row("Store", "1", ""), row("Store", "2", "")}, "Store: 1 ran 1, 1 ran 2\n"},
		"each kind":                    {[]Row{row("B", "", "aaa"), row("B", "", "aaa"), row("A", "", "bbb"), row("A", "", "ccc")}, "B: 2 ran aaa\nA: 1 ran bbb, 1 ran ccc\n"},
		"not one resource":             {[]Row{row("Store", "", "aaa")}, ""},
		"not what nothing is known of": {[]Row{row("Store", "", ""), row("Store", "", "")}, ""},
		"nothing":                      {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Summary(Versions(test.rows))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheVersionOfARowIsText(t *testing.T) {
	row := RowOf(store(), time.Hour, cr(t, "", ran(`{"endedAt":"2026-11-24T11:50:00Z","version":"1\u001b[2J","digest":"d\u001b"}`, isAwaiting, succeeded)))
	if row.Version != `1\x1b[2J` || row.Digest != `d\x1b` {
		t.Errorf("got %q, %q", row.Version, row.Digest)
	}
}
