// Package scratch gives tests directories and files to work with, reads cases that
// stand in files, finds the repository, and ends processes that play others. Tests of
// any package may use it: it imports nothing of the module.
package scratch

import (
	"os"
	"path/filepath"
	"testing"
)

// Short makes a directory whose path is short whatever the test's name is, as that of
// t.TempDir is not: sockets have to fit below it. It goes with the test.
func Short(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/tmp", "t") //nolint:usetesting // See above.
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}

// Write writes files, by their paths relative to a directory, with the directories that
// they need.
func Write(tb testing.TB, dir string, files map[string]string) {
	tb.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil { //nolint:gosec // As files of content are.
			tb.Fatal(err)
		}
	}
}

// Repository is the directory of the module that the test is in.
func Repository(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			tb.Fatal("no directory above the test has a go.mod")
		}
		dir = filepath.Dir(dir)
	}
}
