package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestNotesAreTheSectionOfTheVersion(t *testing.T) {
	changelog := "# Changelog\n\n## Unreleased\n\nNew.\n\n### More\n\n- x\n\n## 1.2.3 (2026-01-01)\n\nOld.\n\n## 1.2.2\n\n## 1.2.1\n"
	for section, want := range map[string]string{"Unreleased": "New.\n\n### More\n\n- x\n", "1.2.3": "Old.\n"} {
		if got, err := notesOf(changelog, section); err != nil || got != want {
			t.Errorf("%s: got %q, %v", section, got, err)
		}
	}
	for _, section := range []string{"1.2.2", "1.2", "9.9.9"} {
		if got, err := notesOf(changelog, section); err == nil {
			t.Errorf("%s: got %q, want an error: a release without notes", section, got)
		}
	}
}

// TestTheChangelogHasNotes: a dry run takes what is not released yet.
func TestTheChangelogHasNotes(t *testing.T) {
	var out bytes.Buffer
	if err := run([]string{"notes", "../../CHANGELOG.md", "Unreleased"}, &out); err != nil || out.Len() == 0 {
		t.Errorf("%v, %d bytes", err, out.Len())
	}
}

const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func sum(text string) string {
	of := sha256.Sum256([]byte(text))
	return hex.EncodeToString(of[:])
}

// released are the files of a release that fits together.
func released() map[string]string {
	images := ""
	for _, name := range []string{"charts/ensign", "ensign", "ensign-base", "ensign-bundle"} {
		images += name + " registry.example/team/" + name + digest + "\n"
	}
	return map[string]string{
		"images.txt":       images,
		"install.yaml":     "spec:\n  containers:\n    - args: []\n      image: registry.example/team/ensign" + digest + "\n",
		"ensign-1.2.3.tgz": "chart",
		"index.yaml":       "entries:\n  ensign:\n    - {version: 1.2.3, digest: " + sum("chart") + ", urls: [\"https://downloads.example/ensign-1.2.3.tgz\"]}\n",
	}
}

// checked writes the files, with their checksums, and checks them.
func checked(t *testing.T, files map[string]string) error {
	t.Helper()
	dir, sums := t.TempDir(), ""
	for name, text := range files {
		sums += sum(text) + "  " + name + "\n"
	}
	if _, has := files["SHA256SUMS"]; !has {
		files["SHA256SUMS"] = sums
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return run([]string{"check", dir, "1.2.3"}, &bytes.Buffer{})
}

func TestAReleaseFitsTogether(t *testing.T) {
	if err := checked(t, released()); err != nil {
		t.Errorf("nothing is wrong with it: %v", err)
	}
	for name, c := range map[string]struct{ file, old, with, want string }{
		"an image by its tag":        {"images.txt", digest, ":1.2.3", "by its digest"},
		"no base image":              {"images.txt", "ensign-base ", "other ", "does not have ensign-base"},
		"an installer by a tag":      {"install.yaml", digest, ":1.2.3", "install.yaml runs"},
		"an installer of no image":   {"install.yaml", "image:", "picture:", "runs no image"},
		"an index of another chart":  {"index.yaml", sum("chart"), sum("another"), "has the digest"},
		"an index of an older chart": {"index.yaml", "version: 1.2.3", "version: 1.2.2", "does not have the chart"},
		"an index without a host":    {"index.yaml", "https://downloads.example/", "", "want one address"},
		"a file without a checksum":  {"SHA256SUMS", "", "\n", "SHA256SUMS:"},
	} {
		files := released()
		files[c.file] = strings.Replace(files[c.file], c.old, c.with, 1)
		if err := checked(t, files); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want an error with %q, got %v", name, c.want, err)
		}
	}
}

func TestAnSBOMNamesWhatIsInAnArchive(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for _, file := range []struct {
		name, text string
		mode       int64
	}{
		{"ensign/program", string(text), 0o755},
		{"var/lib/dpkg/status", "Package: tini\nStatus: install ok installed\nArchitecture: amd64\nVersion: 0.19.0-1\nDescription: a\n b: c\n\nPackage: gone\nStatus: deinstall ok config-files\nVersion: 1\n", 0o644},
		{"usr/lib/ansible_core-2.19.dist-info/METADATA", "Metadata-Version: 2.1\nName: ansible_core\nVersion: 2.19.1\n\nVersion: 9\n", 0o644},
		{"usr/lib/ansible_collections/kubernetes/core/MANIFEST.json", `{"collection_info": {"namespace": "kubernetes", "name": "core", "version": "6.1.0"}}`, 0o644},
		{"bin/script", strings.Repeat("#", 2<<20), 0o755},
	} {
		if err := writer.WriteHeader(&tar.Header{Name: file.name, Mode: file.mode, Size: int64(len(file.text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(file.text)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "archive.tar")
	if err := os.WriteFile(path, archive.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{"sbom", "ensign", "1.2.3", path}, &out); err != nil {
		t.Fatal(err)
	}
	var written struct {
		Components []component `json:"components"`
	}
	if err := json.Unmarshal(out.Bytes(), &written); err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, each := range written.Components {
		all += each.PURL + "\n"
	}
	for _, want := range []string{
		"pkg:deb/debian/tini@0.19.0-1?arch=amd64\n", "pkg:pypi/ansible-core@2.19.1\n", "pkg:generic/ansible-collection/kubernetes.core@6.1.0\n",
		"pkg:golang/sigs.k8s.io/yaml@v", "pkg:golang/stdlib@1.",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("want %s in\n%s", want, all)
		}
	}
	if strings.Contains(all, "gone") || strings.Contains(all, "@9\n") {
		t.Errorf("what is not installed is there:\n%s", all)
	}
}

func TestTheScriptSaysWhatIsWrong(t *testing.T) {
	for call, want := range map[string]string{
		"":                 "write 1.2.3",
		"latest":           "write 1.2.3",
		"1.2.3 nonsense":   "there is no step nonsense; there are: notes programs",
		"1.2.3 notes sums": "REGISTRY is not set",
	} {
		cmd := exec.CommandContext(t.Context(), "./release.sh", strings.Fields(call)...)
		cmd.Env = append(os.Environ(), "REGISTRY=", "SIGN=")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: want %q, got %v: %s", call, want, err, out)
		}
	}
	out, err := exec.CommandContext(t.Context(), "./release.sh", "--help").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "REGISTRY=host/path") || strings.Contains(string(out), "set -euo") {
		t.Errorf("--help: %v\n%s", err, out)
	}
}

func TestSizesAreForPeople(t *testing.T) {
	for bytes, want := range map[int64]string{7: "7 B", 1500: "1.5 kB", 62_128_290: "62.1 MB"} {
		if got := size(bytes); got != want {
			t.Errorf(fmt.Sprint(bytes)+": got %s, want %s", got, want)
		}
	}
}

// TestAChartIsAddedBesideTheSite publishes into a repository whose pages have a site and an older chart.
func TestAChartIsAddedBesideTheSite(t *testing.T) {
	dir := t.TempDir()
	script, err := filepath.Abs("publish-charts.sh")
	if err != nil {
		t.Fatal(err)
	}
	// As helm merges: what was there follows what is new.
	helm := "#!/bin/bash\n[[ $1 $2 == 'repo index' && $4 == --url ]] && ls $3 | grep tgz >$3/new && { cat $3/new; [[ -z ${7:-} ]] || cat $7; } >$3/index.yaml\n"
	for name, text := range map[string]string{"helm": strings.Replace(helm, "[[ $1 $2 ==", "[[ \"$1 $2\" ==", 1), "ensign-1.1.0.tgz": "a", "ensign-1.2.0.tgz": "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	shell := func(text string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", text)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HELM="+dir+"/helm", "SCRIPT="+script, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", text, err, out)
		}
		return string(out)
	}
	shell("git init -q --bare -b main pages && git clone -q pages clone 2>/dev/null && cd clone && git commit -q --allow-empty -m x && git push -q origin HEAD:main")
	shell("cd clone && $SCRIPT ../ensign-1.1.0.tgz https://downloads.example")
	shell("git clone -q -b gh-pages pages site && cd site && echo site >index.html && git add . && git commit -q -m site && git push -q")
	shell("cd clone && $SCRIPT ../ensign-1.2.0.tgz https://downloads.example")
	got := shell("git -C pages ls-tree -r --name-only gh-pages; git -C pages show gh-pages:charts/index.yaml gh-pages:index.html; git -C clone status --short")
	if want := "charts/index.yaml\nindex.html\nensign-1.2.0.tgz\nensign-1.1.0.tgz\nsite\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
