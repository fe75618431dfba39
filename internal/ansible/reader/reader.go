package reader

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
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

// Question is what Ask asks.
type Question struct {
	Texts []Text `json:"texts"`
	// Directory is the project's; relative names in playbooks begin there.
	Directory string `json:"directory"`
	// Installed and Syntax may be nil; both are answered by Ansible's own modules, whose import
	// takes half a second.
	Installed *Installed `json:"installed,omitempty"`
	Syntax    []Content  `json:"syntax,omitempty"`
}

// Text is a template, or an expression without braces if Bare is set.
type Text struct {
	Text string `json:"text"`
	Bare bool   `json:"bare"`
}

// Installed names plugins that may be installed.
type Installed struct {
	Modules     []Module     `json:"modules"`
	Filters     []string     `json:"filters"`
	Tests       []string     `json:"tests"`
	Lookups     []string     `json:"lookups"`
	Collections []Collection `json:"collections"`
	// Directories are those of roles and playbooks, which may have plugins of their own.
	Directories []string `json:"directories"`
}

// Module is a module's name as it is written, and where it is looked for.
type Module struct {
	Name        string   `json:"name"`
	Collections []string `json:"collections"`
}

// Collection is an installed collection.
type Collection struct {
	Name string `json:"name"`
	Dir  string `json:"dir"`
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
	Texts     []Analysis       `json:"texts"`
	Faults    []Fault          `json:"faults"`
	Modules   []Plugin         `json:"modules"`
	Filters   []bool           `json:"filters"`
	Tests     []bool           `json:"tests"`
	Lookups   []Plugin         `json:"lookups"`
	Variables []OptionVariable `json:"variables"`
	// Near has names that may be meant, by the kind and the name of each plugin that is not
	// there: "module debugg".
	Near map[string][]string `json:"near"`
}

// Fault is what Ansible's loader says against content. Line and Column may be 0.
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
}

// OptionVariable is a variable that sets an option of an installed plugin.
type OptionVariable struct {
	Variable string `json:"variable"`
	Plugin   string `json:"plugin"`
	Kind     string `json:"kind"`
	// Directory is that of the role or playbook that has the plugin; "" for a collection's.
	Directory string `json:"directory"`
}

// Ask asks the Python environment. collections and roles are directories in the order of
// search, as for ANSIBLE_COLLECTIONS_PATH and ANSIBLE_ROLES_PATH.
func Ask(ctx context.Context, env pyenv.Env, q Question, collections, roles []string) (answer Answer, err error) {
	dir, err := os.MkdirTemp("", "ensign-read-")
	if err != nil {
		return answer, fmt.Errorf("read the content: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := provide(dir); err != nil {
		return answer, fmt.Errorf("read the content: %w", err)
	}
	asked, err := json.Marshal(q)
	if err != nil {
		return answer, fmt.Errorf("read the content: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, env.Python, filepath.Join(dir, "ensign_read.py"))
	cmd.Dir = dir
	cmd.Env = append(slices.Clone(env.Environ()), "ANSIBLE_LOCAL_TEMP="+filepath.Join(dir, "tmp"), "ANSIBLE_DEPRECATION_WARNINGS=false",
		"ANSIBLE_COLLECTIONS_PATH="+joined(collections), "ANSIBLE_ROLES_PATH="+joined(roles), "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stdin = bytes.NewReader(asked)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return answer, fmt.Errorf("read the content with %q: %w: %s", env.Python, err, strings.TrimSpace(lastLine(stderr.String())))
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return answer, fmt.Errorf("read the content with %q: %w", env.Python, err)
	}
	return answer, nil
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
