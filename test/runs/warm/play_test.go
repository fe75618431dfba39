package warm

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/scratch"
	"github.com/ensign-operator/ensign/test/runs/bench"
)

// play is a playbook with what it needs, and what is said of its runs. It is one file
// of testdata/plays, as scratch.Case reads it, with the settings of set. One of its files
// is play.yml, or tasks.yml for tasks of localhost alone. @CONTENT@ in any of it
// stands for the directory of the files, and @PYTHON@ for the interpreter.
type play struct {
	name, about string
	files       map[string]string
	// fast plays are in `make test`, others have the build tag long.
	fast bool
	// exit is ansible-runner's exit code.
	exit int
	// python is how many modules are forked in the warm run; -1 for any number.
	python int
	// cold is what is started cold in the warm run although it asked for a fork.
	cold []string
	// env is for the manager, args for ansible-playbook, and the inventory one of the files.
	env       []string
	args      string
	inventory string
	verbosity int
	// cluster is for plays that need an API server; they have the variable namespace.
	cluster bool
}

// plays reads the plays, of which there are others with the build tag long.
func plays(t *testing.T) []play {
	t.Helper()
	names, err := filepath.Glob("testdata/plays/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("got plays %q (error %v)", names, err)
	}
	var found []play
	for _, name := range names {
		if p := named(t, strings.TrimSuffix(filepath.Base(name), ".txt")); p.fast || everyPlay {
			found = append(found, p)
		}
	}
	return found
}

// named returns one of the plays, whatever the build tags.
func named(t *testing.T, name string) play {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata/plays", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := parse(name, string(content))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

func parse(name, content string) (play, error) {
	p := play{name: name}
	var err error
	p.about, p.files, err = scratch.Case(content, func(key, value string) error { return set(&p, key, value) })
	if err != nil {
		return play{}, err
	}
	if tasks, found := p.files["tasks.yml"]; found && p.files["play.yml"] == "" {
		delete(p.files, "tasks.yml")
		p.files["play.yml"] = bench.Play(tasks)
	}
	if p.files["play.yml"] == "" {
		return play{}, errors.New("there is no play")
	}
	return p, nil
}

func set(p *play, key, value string) (err error) {
	switch key {
	case "fast":
		p.fast = true
	case "cluster":
		p.cluster = true
	case "exit":
		p.exit, err = strconv.Atoi(value)
	case "python":
		p.python, err = strconv.Atoi(strings.Replace(value, "any", "-1", 1))
	case "verbosity":
		p.verbosity, err = strconv.Atoi(value)
	case "cold":
		p.cold = append(p.cold, value)
	case "env":
		p.env = append(p.env, value)
	case "args":
		p.args = value
	case "inventory":
		p.inventory = value
	default:
		return errors.New("there is no such setting")
	}
	return err
}

// dir is where the files of the play are.
func (p play) dir(b *counted) string { return b.In(p.name) }

// lay writes the play's files, and nothing else is there then. What is there already
// is left as it is: servers notice when something changes that they have imported.
func (p play) lay(b *counted) {
	b.t.Helper()
	dir := p.dir(b)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || p.has(strings.TrimPrefix(path, dir+"/")) || path == dir {
			return err
		}
		if err := os.RemoveAll(path); err != nil || !entry.IsDir() {
			return err
		}
		return fs.SkipDir
	})
	if err != nil {
		b.t.Fatal(err)
	}
	for name, content := range p.files {
		p.write(b, filepath.Join(dir, name), p.in(b, content))
	}
}

// lay writes the files of plays before a server starts, which compiles their templates then.
func (b *counted) lay(plays []play) {
	b.t.Helper()
	for _, p := range plays {
		p.lay(b)
	}
}

// has reports whether the play has a file or a directory of this name.
func (p play) has(name string) bool {
	for file := range p.files {
		if file == name || strings.HasPrefix(file, name+"/") {
			return true
		}
	}
	return false
}

func (p play) write(b *counted, path, content string) {
	b.t.Helper()
	mode := os.FileMode(0o644)
	if strings.HasPrefix(content, "#!") {
		mode = 0o755
	}
	if there, err := os.ReadFile(path); err == nil && string(there) == content {
		return
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), mode), os.Chmod(path, mode)); err != nil {
		b.t.Fatal(err)
	}
}

// in replaces what stands for something.
func (p play) in(b *counted, text string) string {
	return strings.NewReplacer("@CONTENT@", p.dir(b), "@PYTHON@", b.Python).Replace(text)
}

// environ is what the play adds to the manager's environment.
func (p play) environ(b *counted) []string {
	var env []string
	for _, entry := range p.env {
		env = append(env, p.in(b, entry))
	}
	return env
}

// with returns the play with one thing changed.
func (p play) with(t *testing.T, text, instead string) play {
	t.Helper()
	before := p.files["play.yml"]
	p.files = maps.Clone(p.files)
	// The lines of tasks are indented.
	p.files["play.yml"] = strings.Replace(before, strings.ReplaceAll(text, "\n", "\n  "), strings.ReplaceAll(instead, "\n", "\n  "), 1)
	if p.files["play.yml"] == before {
		t.Fatalf("there is no %q in the play", text)
	}
	return p
}
