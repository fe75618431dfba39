// Command tracked says which files do not belong into the repository: large ones, compiled
// programs, and those that name a path of somebody's machine. `make lint` calls it.
//
// It looks at the files that git tracks, and at new ones that git does not ignore, so that a
// file is found before it is committed.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// largest is the size in bytes above which a file does not belong into the repository: each
// clone would carry it forever.
const largest = 1 << 20

func main() {
	found, err := look(".", os.Stdout)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "tracked:", err)
		os.Exit(2)
	}
	if found > 0 {
		os.Exit(1)
	}
}

// look prints the faults of the files of the clone that has the directory, and returns their number.
func look(dir string, out io.Writer) (int, error) {
	top, err := git(dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return 0, err
	}
	root := strings.TrimSuffix(top, "\n")
	list, err := git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return 0, err
	}
	found := 0
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		content, err := read(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // It is deleted, and git is yet to be told.
		}
		if err != nil {
			return found, err
		}
		for _, fault := range faults(name, content, root) {
			found++
			_, _ = fmt.Fprintln(out, fault)
		}
	}
	return found, nil
}

// read returns git's content of a path: a file's content, a link's target, nothing of the directory
// of a submodule.
func read(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return []byte(target), err
	case !info.Mode().IsRegular():
		return nil, nil
	}
	return os.ReadFile(path)
}

func git(dir string, args ...string) (string, error) {
	command := exec.Command("git", args...)
	command.Dir = dir
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, said.String())
	}
	return string(out), nil
}

// faults returns a sentence for each fault of a file, with its place and a remedy.
func faults(name string, content []byte, clone string) []string {
	if kind := compiled(name, content); kind != "" {
		return []string{fmt.Sprintf("%s: is compiled (%s): \"git rm --cached %[1]s\" and a line in .gitignore; it is built where it is needed", name, kind)}
	}
	var found []string
	if len(content) > largest {
		found = append(found, fmt.Sprintf("%s: has %d bytes, more than %d: each clone would carry it; make it where it is needed, or make it smaller", name, len(content), largest))
	}
	number := 0
	for line := range bytes.Lines(content) {
		number++
		if path := machinePath(line, clone); path != "" {
			found = append(found, fmt.Sprintf("%s:%d: %s is a path of somebody's machine: say it from the root of the repository, or as DIR, $HOME or /home/u", name, number, path))
		}
	}
	return found
}

// compiled names the kind of a compiled program or library; it returns "" for anything else.
func compiled(name string, content []byte) string {
	switch filepath.Ext(name) {
	case ".pyc", ".pyo":
		return "Python's bytecode"
	}
	for magic, kind := range map[string]string{
		"\x7fELF":          "ELF",
		"\xfe\xed\xfa\xce": "Mach-O", "\xfe\xed\xfa\xcf": "Mach-O", "\xce\xfa\xed\xfe": "Mach-O", "\xcf\xfa\xed\xfe": "Mach-O",
		"\xca\xfe\xba\xbe": "Mach-O or Java",
		"\x00asm":          "WebAssembly",
		"!<arch>\n":        "an archive of objects",
	} {
		if bytes.HasPrefix(content, []byte(magic)) {
			return kind
		}
	}
	// A text may begin with these two letters.
	if bytes.HasPrefix(content, []byte("MZ")) && bytes.IndexByte(content, 0) >= 0 {
		return "PE"
	}
	return ""
}

// places finds paths that only one machine has. A path begins after none of these letters:
// "dir/home/x" and "$place/work" do not lead from the root. Paths on which containers and programs
// agree do not count: /opt/ansible, ~/.cache, /root/.kube.
var places = regexp.MustCompile(`(?:^|[^\w.$)}>/~-])` +
	`(/(?:home|Users|work|workspace|builds)/([\w-][\w.-]*)/?[\w.-]*|/root/\w[\w.-]*|/(?:var/folders|private/var)/[\w.-]+|(?i:[a-z]:\\+users\\+\w+))`)

// machinePath returns the first path of a line that only one machine has, or "". The clone is
// where the repository lies on this one.
func machinePath(line []byte, clone string) string {
	invented := []string{"u", "user", "you"} // Users that no machine has.
	for _, match := range places.FindAllSubmatch(line, -1) {
		if !slices.Contains(invented, string(match[2])) {
			return string(match[1])
		}
	}
	// Unless it lies where containers have their content, or right below "/".
	_, rest, found := strings.Cut(string(line), clone)
	if found && strings.Count(clone, "/") > 1 && !strings.HasPrefix(clone, "/opt/ansible") && !startsWithWord.MatchString(rest) {
		return clone
	}
	return ""
}

var startsWithWord = regexp.MustCompile(`^[\w-]`)
