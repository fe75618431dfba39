package scaffold

import (
	"os/exec"
	"strings"
	"testing"
)

// TestAReleaseMakesProjectsOfWhatItPublished: whoever has the program alone has no clone to build a base image from.
func TestAReleaseMakesProjectsOfWhatItPublished(t *testing.T) {
	image, version := baseImage, moduleVersion
	t.Cleanup(func() { baseImage, moduleVersion = image, version })
	baseImage, moduleVersion = "registry.example:5000/team/ensign-base:1.2.3", "v1.2.3"
	for _, repo := range []string{"", "example.com/shop"} {
		dir := t.TempDir()
		plan, err := Init(dir, Project{Domain: "myorg.tld", ProjectName: "shop", Program: "ensign", Repo: repo})
		written(t, plan, err)
		if got := read(t, dir, "Dockerfile"); !strings.Contains(got, "ARG BASE_IMG="+baseImage+"\n") {
			t.Errorf("repo %q: the Dockerfile is\n%s", repo, got)
		}
		cmd := exec.CommandContext(t.Context(), "make", "--dry-run", "docker-build")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), " --build-arg BASE_IMG="+baseImage+" ") {
			t.Errorf("repo %q: %v\n%s", repo, err, out)
		}
		if repo == "" {
			continue
		}
		if got := read(t, dir, "go.mod"); !strings.Contains(got, "ensign v1.2.3\n") || strings.Contains(got, "replace") {
			t.Errorf("go.mod is\n%s", got)
		}
		if notes := strings.Join(plan.Notes, "\n"); notes != "complete go.mod: go mod tidy" {
			t.Errorf("notes: %s", notes)
		}
	}
}
