package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// verbose is what Ginkgo prints of a spec that fails, with -ginkgo.v.
const verbose = `Running Suite: charts
hello waits
  [FAILED] in [It] - a_test.go:7 @ 11/26/26
  the manager's log
• [FAILED] [2.0 seconds]
hello [It] waits
a_test.go:5

  [FAILED] Expected
      <int>: 0
  to equal
      <int>: 1
  In [It] at: a_test.go:7 @ 11/26/26

Ran 1 of 90 Specs in 2.1 seconds
`

func TestWhatSpecsSay(t *testing.T) {
	for name, c := range map[string]struct {
		prints  string
		code    string
		want    string
		wantErr string
	}{
		"one failed: the first lines of why":                    {prints: verbose, code: "1", want: "Expected <int>: 0 to equal <int>: 1"},
		"all passed":                                            {prints: "Ran 2 of 90 Specs in 1 seconds\n", code: "0"},
		"no spec has that name: nothing was tried":              {prints: "Ran 0 of 90 Specs in 0 seconds\n", code: "0", wantErr: "no spec of test/charts ran"},
		"the suite broke: a mutant is not noticed by a machine": {prints: "Ran 1 of 90 Specs\npanic: no space\n", code: "2", wantErr: "ended otherwise than by a spec"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			suite := specSuite{root: dir, dir: "test/charts", program: filepath.Join(dir, "charts.test"), logs: filepath.Join(dir, "logs", "of it")}
			script := "#!/bin/sh\ncat <<'EOF'\n" + c.prints + "EOF\nexit " + c.code + "\n"
			if err := os.MkdirAll(filepath.Join(dir, "test", "charts"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(suite.program, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			got, err := suite.run(context.Background(), "as they are", "manager", "waits")
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if (err != nil) != (c.wantErr != "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("got error %v, want one with %q", err, c.wantErr)
			}
			if kept, err := os.ReadFile(filepath.Join(suite.logs, "as-they-are.log")); err != nil || string(kept) != c.prints {
				t.Errorf("the log has %q (error %v), want %q", kept, err, c.prints)
			}
		})
	}
}
