// Package site tests the scripts that make and publish the site.
package site

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	command := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=u", "-c", "user.email=u@example.org"}, args...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	scratch.Write(t, filepath.Dir(path), map[string]string{filepath.Base(path): text})
}

// clone returns a clone of a new repository that has one commit.
func clone(t *testing.T) string {
	t.Helper()
	origin, dir := t.TempDir(), t.TempDir()
	git(t, origin, "init", "--quiet", "--bare", "--initial-branch=main")
	git(t, dir, "clone", "--quiet", origin, ".")
	git(t, dir, "config", "user.name", "u")
	git(t, dir, "config", "user.email", "u@example.org")
	write(t, filepath.Join(dir, "README.md"), "words\n")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "--quiet", "-m", "Begin")
	git(t, dir, "push", "--quiet", "origin", "HEAD:main")
	return dir
}

// publish puts a site of these files on the clone's origin, and returns what the script says.
func publish(t *testing.T, clone string, files map[string]string) string {
	t.Helper()
	site := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(site, name), text)
	}
	script, err := filepath.Abs("publish.sh")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(script, site)
	command.Dir = clone
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// published returns the files on the origin's branch of pages.
func published(t *testing.T, clone string) string {
	t.Helper()
	git(t, clone, "fetch", "--quiet", "origin", "gh-pages")
	return strings.Join(strings.Fields(git(t, clone, "ls-tree", "-r", "--name-only", "FETCH_HEAD")), " ")
}

func TestTheFirstSiteMakesTheBranch(t *testing.T) {
	dir := clone(t)
	publish(t, dir, map[string]string{"index.html": "new"})
	if got, want := published(t, dir), ".nojekyll index.html"; got != want {
		t.Errorf("published are %q, want %q", got, want)
	}
}

func TestASiteReplacesTheFormerOneAndLeavesTheCharts(t *testing.T) {
	dir := clone(t)
	publish(t, dir, map[string]string{"index.html": "old", "gone/index.html": "old"})
	git(t, dir, "checkout", "--quiet", "--detach", "origin/gh-pages")
	write(t, filepath.Join(dir, "charts/index.yaml"), "entries: {}\n")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "--quiet", "-m", "A release")
	git(t, dir, "push", "--quiet", "origin", "HEAD:gh-pages")
	git(t, dir, "checkout", "--quiet", "main")

	publish(t, dir, map[string]string{"index.html": "new"})
	if got, want := published(t, dir), ".nojekyll charts/index.yaml index.html"; got != want {
		t.Errorf("published are %q, want %q", got, want)
	}
	if said := publish(t, dir, map[string]string{"index.html": "new"}); !strings.Contains(said, "up to date") {
		t.Errorf("the same site is published again: %s", said)
	}
	if status := git(t, dir, "status", "--porcelain") + git(t, dir, "branch", "--list", "gh-pages*"); status != "" {
		t.Errorf("the clone is left with %q", status)
	}
}
