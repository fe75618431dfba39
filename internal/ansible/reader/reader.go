package reader

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	runprogram "github.com/ensign-operator/ensign/internal/ansible/runner/program"
)

// timeout is ample: a hundred roles take 20 s.
const timeout = 10 * time.Minute

//go:embed program/*.py
var program embed.FS

// Question is the question to the environment.
type Question struct {
	Texts []Text `json:"texts"`
	// Directory is the project's; relative names in playbooks begin there.
	Directory string `json:"directory"`
	// Image is the directory that the project has in its image, "" for none: a path below it is
	// that of the project, unless only the path itself is there.
	Image string `json:"image,omitempty"`
	// Playbooks are directories of playbooks; Ansible looks for collections below them first.
	Playbooks []string `json:"playbooks,omitempty"`
	// Installed and Syntax may be nil; both are answered by Ansible's own modules, whose import
	// takes half a second.
	Installed *Installed `json:"installed,omitempty"`
	Syntax    []Content  `json:"syntax,omitempty"`
	// Arguments are answered where Installed or Syntax are.
	Arguments []Arguments `json:"arguments,omitempty"`
}

// Arguments are variables for a role: Spec has the options of its argument specs.
type Arguments struct {
	Spec   map[string]any `json:"spec"`
	Values map[string]any `json:"values"`
}

// Text is a template, or an expression without braces if Bare is set.
type Text struct {
	Text       string     `json:"text"`
	Bare       bool       `json:"bare"`
	Delimiters Delimiters `json:"delimiters"`
}

// Delimiters are those that a task sets for a template; "" is Jinja's own.
type Delimiters struct {
	BlockStart    string `json:"block_start_string,omitempty"`
	BlockEnd      string `json:"block_end_string,omitempty"`
	VariableStart string `json:"variable_start_string,omitempty"`
	VariableEnd   string `json:"variable_end_string,omitempty"`
	CommentStart  string `json:"comment_start_string,omitempty"`
	CommentEnd    string `json:"comment_end_string,omitempty"`
}

// Installed names plugins that may be installed.
type Installed struct {
	Modules []Module `json:"modules"`
	Filters []string `json:"filters"`
	Tests   []string `json:"tests"`
	Lookups []string `json:"lookups"`
}

// Module is a module's name as it is written, and where it is looked for.
type Module struct {
	Name        string   `json:"name"`
	Collections []string `json:"collections"`
}

// Content is a playbook, a role, or a file of tasks or handlers: Kind says which.
type Content struct {
	Kind string `json:"kind"`
	Path string `json:"path"`
	// Role is the role's name or path, as a playbook would name it.
	Role        string   `json:"role,omitempty"`
	Collections []string `json:"collections,omitempty"`
}

// Answer has an element for each element of the question.
type Answer struct {
	Texts   []Analysis `json:"texts"`
	Faults  []Fault    `json:"faults"`
	Modules []Plugin   `json:"modules"`
	Filters []Plugin   `json:"filters"`
	Tests   []Plugin   `json:"tests"`
	Lookups []Plugin   `json:"lookups"`
	// Arguments are Ansible's objections against each.
	Arguments [][]string `json:"arguments"`
	// Near has names that may be meant, by the kind and the name of each plugin that is not
	// there: "module debugg".
	Near map[string][]string `json:"near"`
}

// Fault is an objection of Ansible's loader against content. Line and Column may be 0.
type Fault struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// Plugin is where a plugin is. Path is "" if it was not found; Error may say why.
type Plugin struct {
	Path    string   `json:"path"`
	FQCN    string   `json:"fqcn"`
	Missing []string `json:"missing"`
	Error   string   `json:"error"`
	// Options are those that a module documents; none if it takes any, or documents none.
	Options Options `json:"options"`
}

// Options are options of a module by their names.
type Options map[string]Option

// Option is a module's documentation of one of its options. Options are those of a mapping's keys.
type Option struct {
	Type     string   `json:"type"`
	Aliases  []string `json:"aliases"`
	Choices  []string `json:"choices"`
	Required bool     `json:"required"`
	Options  Options  `json:"options"`
}

// Reader is a Python process that answers questions, one after the other.
type Reader struct {
	python  string
	dir     string
	cmd     *exec.Cmd
	cancel  context.CancelFunc
	in      io.WriteCloser
	answers *json.Decoder
	stderr  bytes.Buffer
	ended   bool
}

// Start starts the process. collections and roles are directories in the order of search, as for
// ANSIBLE_COLLECTIONS_PATH and ANSIBLE_ROLES_PATH. The caller closes the Reader.
func Start(ctx context.Context, env pyenv.Env, collections, roles []string) (_ *Reader, err error) {
	r := &Reader{python: env.Python}
	defer func() {
		if err != nil {
			err = fmt.Errorf("read the content: %w", errors.Join(err, os.RemoveAll(r.dir)))
		}
	}()
	if r.dir, err = os.MkdirTemp("", "ensign-read-"); err != nil {
		return nil, err
	}
	if err := provide(r.dir); err != nil {
		return nil, err
	}
	ctx, r.cancel = context.WithTimeout(ctx, timeout)
	r.cmd = exec.CommandContext(ctx, env.Python, filepath.Join(r.dir, "ensign_read.py"))
	r.cmd.Dir = r.dir
	r.cmd.Env = append(slices.Clone(env.Environ()), "ANSIBLE_LOCAL_TEMP="+filepath.Join(r.dir, "tmp"), "ANSIBLE_DEPRECATION_WARNINGS=false",
		"ANSIBLE_COLLECTIONS_PATH="+joined(collections), "ANSIBLE_ROLES_PATH="+joined(roles), "PYTHONDONTWRITEBYTECODE=1")
	r.cmd.Stderr = &r.stderr
	out, err := r.cmd.StdoutPipe()
	if err == nil {
		r.in, err = r.cmd.StdinPipe()
	}
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		r.cancel()
		return nil, err
	}
	r.answers = json.NewDecoder(bufio.NewReader(out))
	return r, nil
}

// Ask asks a question. After an error the process has ended.
func (r *Reader) Ask(q Question) (answer Answer, err error) {
	asked, err := json.Marshal(q)
	if err != nil {
		return answer, fmt.Errorf("read the content: %w", err)
	}
	if _, err = r.in.Write(append(asked, '\n')); err == nil {
		err = r.answers.Decode(&answer)
	}
	if err != nil {
		if failure := r.end(); failure != nil { // It says why there is no answer.
			err = failure
		}
		return answer, fmt.Errorf("read the content with %q: %w: %s", r.python, err, strings.TrimSpace(lastLine(r.stderr.String())))
	}
	return answer, nil
}

// end lets the process end, and returns how it did.
func (r *Reader) end() error {
	if r.ended {
		return nil
	}
	r.ended = true
	defer r.cancel()
	_ = r.in.Close() // The process reads until here.
	return r.cmd.Wait()
}

// Close ends the process.
func (r *Reader) Close() error {
	if r == nil {
		return nil
	}
	_ = r.end() // All that it had to say is said.
	if err := os.RemoveAll(r.dir); err != nil {
		return fmt.Errorf("read the content: %w", err)
	}
	return nil
}

func provide(dir string) error {
	files, err := program.ReadDir("program")
	for _, file := range files {
		text, readErr := program.ReadFile("program/" + file.Name())
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(dir, file.Name()), text, 0o600))
	}
	near, readErr := runprogram.Near()
	return errors.Join(err, readErr, os.WriteFile(filepath.Join(dir, runprogram.NearName), near, 0o600))
}

func joined(dirs []string) string { return strings.Join(dirs, string(filepath.ListSeparator)) }

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
