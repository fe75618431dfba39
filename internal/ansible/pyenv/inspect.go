package pyenv

import (
	"bytes"
	"context"
	_ "embed" // For inspect.py.
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/runner/program"
)

// minMajor and minMinor are the oldest version of ansible-core that never evaluates text
// that is marked as untrusted.
const minMajor, minMinor = 2, 19

// ErrUnguarded is returned for an environment in whose Kubernetes client a name that a custom
// resource has chosen could lead a request to another object.
var ErrUnguarded = errors.New("its Kubernetes client does not work with the operator's check of names in requests")

// inspectTimeout is ample: Inspect takes 0.2 s.
const inspectTimeout = time.Minute

//go:embed inspect.py
var inspectScript string

// Info describes the packages that are installed in an environment.
type Info struct {
	Python, AnsibleCore, AnsibleRunner string
	// CollectionDirs are the environment's own directories named ansible_collections.
	CollectionDirs []string
	// Digest is a digest of the versions of Python, of every distribution and of every
	// collection in the environment. It does not depend on the environment's path. It does
	// not cover files that were edited in place, distributions installed as a checkout, and
	// collections elsewhere, such as in ANSIBLE_COLLECTIONS_PATH.
	Digest string

	// unguarded says in which way a name could lead a request to another object; "" if in none.
	unguarded string
	// stampPaths are paths of which at least one changes when something is installed or
	// removed.
	stampPaths []string
}

// Inspect returns the installed packages. It returns an error if ansible-core or ansible-runner is
// missing, if ansible-core is older than 2.19, or if the guard of runs does not work with the
// Kubernetes client (ErrUnguarded).
func (e Env) Inspect(ctx context.Context) (Info, error) { return e.inspect(ctx, "prove") }

// Look is Inspect without the proof of the guard, which takes three quarters of its time: for
// commands that read content, and run none.
func (e Env) Look(ctx context.Context) (Info, error) { return e.inspect(ctx, "look") }

func (e Env) inspect(ctx context.Context, how string) (info Info, err error) {
	dir, err := os.MkdirTemp("", "ensign-inspect-")
	if err != nil {
		return Info{}, fmt.Errorf("inspect the Python environment: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if _, err := program.Provide(dir); err != nil {
		return Info{}, fmt.Errorf("inspect the Python environment: %w", err)
	}
	out, err := e.runInspection(ctx, dir, how)
	if err != nil {
		cause := e.blame(ctx, dir, func(ctx context.Context, env Env) error {
			_, err := env.runInspection(ctx, dir, how)
			return err
		})
		if cause != "" {
			cause = " fails" + cause
		}
		return Info{}, fmt.Errorf("inspect the Python environment %q with %q%s: %w", e.Bin, e.Python, cause, err)
	}
	info, err = parseInfo(out)
	if err != nil {
		return Info{}, fmt.Errorf("inspect the Python environment %q with %q: %w", e.Bin, e.Python, err)
	}
	if err := info.validate(); err != nil {
		return Info{}, fmt.Errorf("the Python environment %q can't be used: %w; %s", e.Bin, err, Remedy)
	}
	return info, nil
}

// runInspection runs the script by which the environment's Python says what is installed.
func (e Env) runInspection(ctx context.Context, dir, how string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, e.Python, "-c", inspectScript, how)
	// Python looks for modules in its working directory first.
	cmd.Dir = e.Bin
	cmd.Env = append(slices.Clone(e.environ), "PYTHONPATH="+program.PythonPath(dir, Search{Environ: e.environ}.getenv("PYTHONPATH")))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, lastLine(stderr.String()))
	}
	return out, nil
}

func parseInfo(out []byte) (Info, error) {
	var found struct {
		Python        string   `json:"python"`
		AnsibleCore   string   `json:"ansible_core"`
		AnsibleRunner string   `json:"ansible_runner"`
		Collections   []string `json:"collections"`
		StampPaths    []string `json:"stamp_paths"`
		Unguarded     string   `json:"unguarded"`
		versions
	}
	if err := json.Unmarshal(out, &found); err != nil {
		return Info{}, err
	}
	return Info{
		Python:         found.Python,
		AnsibleCore:    found.AnsibleCore,
		AnsibleRunner:  found.AnsibleRunner,
		CollectionDirs: found.Collections,
		Digest:         found.digest(found.Python),
		unguarded:      found.Unguarded,
		stampPaths:     found.StampPaths,
	}, nil
}

// validate returns an error that says why the environment cannot be used.
func (i Info) validate() error {
	if i.AnsibleRunner == "" {
		return fmt.Errorf("ansible-runner is not installed for Python %s", i.Python)
	}
	if i.AnsibleCore == "" {
		return fmt.Errorf("ansible-core is not installed for Python %s", i.Python)
	}
	if !atLeast(i.AnsibleCore, minMajor, minMinor) {
		return fmt.Errorf("ansible-core %s is older than %d.%d: it evaluates text of custom resources in some places, even marked as unsafe", i.AnsibleCore, minMajor, minMinor)
	}
	if i.unguarded != "" {
		return fmt.Errorf("%w: %s", ErrUnguarded, i.unguarded)
	}
	return nil
}

// atLeast compares the first two numbers of a Python version, such as 2.19.0b1.
func atLeast(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	first, second := leadingNumber(parts[0]), leadingNumber(parts[1])
	return first > major || first == major && second >= minor
}

// leadingNumber returns the number at the beginning of s, or -1 if there is none.
func leadingNumber(s string) int {
	end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		s = s[:end]
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

// HasCollection reports whether a collection such as "community.sops" is in the
// environment or in one of the further paths, which are entries of
// ANSIBLE_COLLECTIONS_PATH.
func (i Info) HasCollection(name string, paths ...string) bool {
	namespace, collection, _ := strings.Cut(name, ".")
	dirs := slices.Clone(i.CollectionDirs)
	for _, path := range paths {
		dirs = append(dirs, path, filepath.Join(path, "ansible_collections"))
	}
	return slices.ContainsFunc(dirs, func(dir string) bool {
		info, err := os.Stat(filepath.Join(dir, namespace, collection))
		return err == nil && info.IsDir()
	})
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
