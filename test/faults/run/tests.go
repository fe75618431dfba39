package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// ofRuns are the mutants of runs that the tests of test/runs have to notice. Their mark is the name of the test.
func ofRuns() kind {
	return kind{called: "mutants of runs", dir: "test/runs/mutants", mark: "test", atOnce: 2, format: regexp.MustCompile(`(?s)^Test: (\w+)\n(.+)$`)}
}

// judgeByTests shows that the tests of a package find the code as it is good, and notice every mutant.
func judgeByTests(ctx context.Context, s settings, k kind) error {
	k.atOnce = cmp.Or(s.atOnce, k.atOnce)
	all, err := k.load(s.root, s.only)
	fmt.Fprintf(s.out, "%d %s\n", len(all), k.called)
	if err != nil || len(all) == 0 {
		return err
	}
	var names []string
	for _, m := range all {
		names = append(names, m.marks[0])
	}
	if said, err := goTest(ctx, s.root, filepath.Dir(k.dir), strings.Join(names, "|")); err != nil || said != "" {
		return errors.Join(err, fmt.Errorf("the code as it is would be convicted: %s", said))
	}
	return k.judge(ctx, s.root, s.out, all, func(m *mutant, dir string) (err error) {
		if m.because, err = goTest(ctx, s.root, filepath.Dir(k.dir), m.marks[0], "-overlay="+filepath.Join(dir, "overlay.json")); m.because != "" {
			m.by = "its test"
		}
		return err
	})
}

// goTest runs tests of a package, and returns what the first said that failed; "" if none did.
func goTest(ctx context.Context, root, dir, tests string, flags ...string) (said string, err error) {
	test := exec.CommandContext(ctx, "go", append([]string{"test", "-count=1", "-v", "-run=^(" + tests + ")$", "./" + dir}, flags...)...)
	test.Dir = root
	test.Env = append(os.Environ(), "PATH="+filepath.Join(root, ".venv", "bin")+":"+os.Getenv("PATH"))
	out, err := test.CombinedOutput()
	_, failure, failed := strings.Cut(string(out), "--- FAIL: ")
	switch {
	case failed:
		return failure, nil
	case err != nil || !strings.Contains(string(out), "--- PASS: "):
		return "", fmt.Errorf("no test %s of %s has ended: %w: %s", tests, dir, err, out)
	}
	return "", nil
}
