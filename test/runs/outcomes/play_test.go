package outcomes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// play is one play of the corpus, with what is expected of it by hand. It is one file
// of testdata/plays/THEME, as scratch.Case reads it, with the settings of set. In all of
// its texts @PYTHON@ stands for the interpreter and @CONTENT@ for the directory of the
// content.
type play struct {
	theme, name string
	// tasks and handlers are a role's, and stand in tasks.yml and handlers.yml. A
	// playbook has the same in its play.
	tasks, handlers string
	// playbook is the form of a playbook where that differs, and stands in play.yml.
	// Without tasks it is one of which a role cannot say what it is about.
	playbook string
	// files are further ones, by their path beside the tasks or the playbook.
	files map[string]string
	// inventory replaces localhost. It is a file of testdata/inventories.
	inventory string
	args      string // of ansible-playbook
	timeout   time.Duration
	// alone is true where plain ansible-playbook, which has no terminal, does
	// something else.
	alone bool
	// revealing is the form in which TestRevealingPlays has the play, and deletion
	// whether TestDeletion has it.
	revealing form
	deletion  bool

	expected
	// included is expected instead where another file includes the tasks, as that
	// of a finalizer does: some faults are found only then, and are a task's.
	included *expected
}

// expected is what a play must come to.
type expected struct {
	reason content.Reason
	// message is a part of the outcome's, and silent is none. "@" stands for what
	// precedes the names of a role's tasks.
	message, silent string
	exit            int // of ansible-playbook
}

func (p play) in(f form) play {
	if f == asFinalizer && p.included != nil {
		p.expected = *p.included
	}
	return p
}

// plays reads those plays of the corpus that are wanted. There must be some.
func plays(t *testing.T, wanted func(p play) bool) []play {
	t.Helper()
	paths, err := filepath.Glob("testdata/plays/*/*")
	if err != nil {
		t.Fatal(err)
	}
	var found []play
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		p, err := read(string(content))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		p.theme, p.name = filepath.Base(filepath.Dir(path)), strings.TrimSuffix(filepath.Base(path), ".txt")
		if wanted(p) {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		t.Fatalf("none of the plays %q is wanted", paths)
	}
	return found
}

func read(content string) (p play, err error) {
	_, p.files, err = scratch.Case(content, func(key, value string) error { return set(&p, key, value) })
	for name, text := range map[string]*string{"tasks.yml": &p.tasks, "handlers.yml": &p.handlers, "play.yml": &p.playbook} {
		*text = p.files[name]
		delete(p.files, name)
	}
	switch {
	case err != nil:
		return play{}, err
	case p.tasks == "" && p.playbook == "":
		return play{}, errors.New("there are neither tasks nor a playbook")
	case p.reason == "" || p.included != nil && p.included.reason == "":
		return play{}, errors.New("it is not said what is expected")
	case p.revealing != "" && !slices.Contains(p.forms(), p.revealing):
		return play{}, fmt.Errorf("it has no form %q", p.revealing)
	}
	return p, nil
}

// set sets what stands before the files. What is said of the included form follows what
// is said of all forms.
func set(p *play, key, value string) (err error) {
	want := &p.expected
	if rest, found := strings.CutPrefix(key, "included "); found {
		if p.included == nil {
			all := p.expected
			p.included = &all
		}
		key, want = rest, p.included
	}
	switch key {
	case "reason":
		want.reason = content.Reason(value)
	case "exit":
		want.exit, err = strconv.Atoi(value)
	case "message":
		want.message = value
	case "silent":
		want.silent = value
	case "inventory":
		var content []byte
		content, err = os.ReadFile(filepath.Join("testdata/inventories", value))
		p.inventory = string(content)
	case "args":
		p.args = value
	case "timeout":
		p.timeout, err = time.ParseDuration(value)
	case "alone":
		p.alone = true
	case "revealing":
		p.revealing = form(value)
	case "deletion":
		p.deletion = true
	default:
		return errors.New("there is no such setting")
	}
	return err
}
