package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// clone returns a repository with these files, none of them committed.
func clone(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "init", "--quiet", dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	scratch.Write(t, dir, files)
	return dir
}

// The planted paths are put together here, so that the repository does not hold them.
var (
	home = "/home" + "/mia"
	mac  = "/Users" + "/mia"
	work = "/work" + "/main"
)

func TestWhatDoesNotBelongIntoARepositoryIsFound(t *testing.T) {
	for name, test := range map[string]struct{ file, text, want string }{
		"a program of Linux, whose name says nothing": {"bench", "\x7fELF\x02\x01 " + home + "/ensign", "bench: is compiled (ELF)"},
		"one of macOS":                      {"bin/tool", "\xcf\xfa\xed\xfe\x0c", "bin/tool: is compiled (Mach-O)"},
		"one of Windows":                    {"tool.exe", "MZ\x90\x00\x03", "tool.exe: is compiled (PE)"},
		"bytecode":                          {"a/x.cpython-313.pyc", "\xf3\r\r\n", "a/x.cpython-313.pyc: is compiled (Python's bytecode)"},
		"a library":                         {"x.a", "!<arch>\nx", "x.a: is compiled (an archive of objects)"},
		"a large text":                      {"big.txt", strings.Repeat("line\n", 1<<18), "big.txt: has 1310720 bytes"},
		"a home":                            {"docs/a.md", "one\nrun " + home + "/ensign/bin/manager\n", "docs/a.md:2: " + home + "/ensign is a path"},
		"a home of macOS":                   {"a.yaml", "path: " + mac + "/src\n", "a.yaml:1: " + mac + "/src is a path"},
		"a home after one that is made up":  {"a.yaml", "a: [/home/u/x, " + home + "/x]", "a.yaml:1: " + home + "/x is a path"},
		"root's, where a person has put it": {"a.sh", "cd \"/root" + "/ensign\"\n", "a.sh:1: /root" + "/ensign is a path"},
		"a work directory":                  {"a.log", "(" + work + "/x.go:3)\n", "a.log:1: " + work + "/x.go is a path"},
		"a user of Windows":                 {"a.txt", `C:\Users` + `\mia\x`, `a.txt:1: C:\Users` + `\mia is a path`},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			found, err := look(clone(t, map[string]string{test.file: test.text, "ok.md": "fine\n"}), &out)
			if err != nil || found != 1 || !strings.HasPrefix(out.String(), test.want) {
				t.Errorf("got %d, %v, %q; want one fault that begins %q", found, err, out.String(), test.want)
			}
		})
	}
}

func TestThePathOfTheCloneIsFoundWhereverItIs(t *testing.T) {
	dir := clone(t, nil)
	link := filepath.Join(dir, "link")
	if err := os.WriteFile(filepath.Join(dir, "a.json"), []byte(`{"at": "`+dir+`/x.go"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if found, err := look(filepath.Join(dir, ".git", ".."), &out); err != nil || found != 2 {
		t.Errorf("got %d, %v: %s", found, err, out.String())
	}
}

func TestWhatBelongsIntoARepositoryIsLeftAlone(t *testing.T) {
	dir := clone(t, map[string]string{
		".gitignore":   "/bin\n",
		"bin/manager":  "\x7fELF",
		"Dockerfile":   "COPY . /opt/ansible\nRUN --mount=type=cache,target=/root/.cache/go-build true\n",
		"a.sh":         "cd \"$dir/home/x\" && ls ~/work/y ${dir}/work/z ./work/q test/work/r\n",
		"a_test.go":    "\"/home/u/.ansible/roles\", \"/root/.kube/config\", \"/tmp/x\"\n",
		"text.md":      "MZ is how a German may write Mainz.\n",
		"deleted.yaml": "",
		"docs/url.md":  "https://x.example/home/mia/page and https://x.example/work/a\n",
	})
	if out, err := exec.Command("git", "-C", dir, "add", "-A").CombinedOutput(); err != nil {
		t.Fatalf("git add: %v: %s", err, out)
	}
	if err := os.Remove(filepath.Join(dir, "deleted.yaml")); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if found, err := look(dir, &out); err != nil || found != 0 {
		t.Errorf("got %d, %v: %s", found, err, out.String())
	}
}

func TestThisRepositoryHasNoneOfThem(t *testing.T) {
	var out strings.Builder
	if found, err := look("../..", &out); err != nil || found != 0 {
		t.Errorf("got %d, %v:\n%s", found, err, out.String())
	}
}
