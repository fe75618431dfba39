package report

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

func TestSilence(t *testing.T) {
	for name, test := range map[string]struct {
		text          string
		line          int
		reason        string
		withoutReason int
	}{
		"behind the line":                {"a: 1 # ensign: ignore=x it is checked\n", 1, "it is checked", 0},
		"a line above":                   {"# ensign: ignore=x why\na: 1\n", 2, "why", 0},
		"above other comments":           {"# ensign: ignore=x why\n# more\na: 1\n", 3, "why", 0},
		"in a template":                  {"{# ensign: ignore=x why #}\n", 1, "why", 0},
		"another ID":                     {"a: 1 # ensign: ignore=y why\n", 1, "", 0},
		"another line":                   {"a: 1 # ensign: ignore=x why\nb: 1\n", 2, "", 0},
		"without a reason it is a fault": {"a: 1 # ensign: ignore=x\n", 1, "", 1},
		"without an ID it is a fault":    {"a: 1 # ensign: ignore= why\n", 1, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			scratch.Write(t, dir, map[string]string{"f.yml": test.text})
			r := New([]Finding{{ID: "x", Severity: Error, File: filepath.Join(dir, "f.yml"), Line: test.line}})
			reason := ""
			if len(r.Silenced) == 1 {
				reason = r.Silenced[0].Reason
			}
			if reason != test.reason || r.Count(Warning) != test.withoutReason || r.Fails(Error) != (test.reason == "") {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestAReportIsSortedAndSaysEachThingOnce(t *testing.T) {
	r := New([]Finding{{ID: "b", File: "f", Line: 2}, {ID: "a", File: "f", Line: 10}, {ID: "b", File: "f", Line: 2}, {ID: "b", File: "f", Line: 2, Message: "m"}, {ID: "z", File: "e", Line: 9}})
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.Place()+f.ID+f.Message)
	}
	if diff := cmp.Diff([]string{"e:9z", "f:2b", "f:2bm", "f:10a"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSeverities(t *testing.T) {
	for worst, want := range map[Severity]string{Error: "true true", Warning: "false true", Info: "false false"} {
		r := New([]Finding{{ID: "x", Severity: worst}})
		got := map[bool]string{true: "true", false: "false"}
		if got[r.Fails(Error)]+" "+got[r.Fails(Warning)] != want {
			t.Errorf("%s: want %s", worst, want)
		}
	}
}

func TestTextHoldsNoControls(t *testing.T) {
	var out bytes.Buffer
	r := New([]Finding{{ID: "x", Severity: Error, File: "/p/f", Line: 1, Column: 2, Message: "a\x1b[2Jb", Why: "w", Remedy: "r"}}).Relative("/p")
	if err := r.Write(&out, "text", ""); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Contains(got, "\x1b") || !strings.HasPrefix(got, "f:1:2: error: a") || !strings.Contains(got, "\n1 error, 0 warnings, 0 info, 0 silenced; 0 files and 0 tasks read\n") {
		t.Errorf("got %q", got)
	}
}
