package pyenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

const (
	// retryInterval is how long a failure is returned again for an environment that has not
	// changed. After that Check tries again, because memory or disk may have been short.
	retryInterval = 10 * time.Second
	// maxInspections is how often an environment is inspected that changes during inspections.
	maxInspections = 3
)

var errChanging = errors.New("its files changed during each check; a later run checks it again")

// Checker checks that an environment is usable and safe, and again after it has changed.
// It must be made by NewChecker. Check may be called concurrently.
type Checker struct {
	env       Env
	variables []byte

	mu        sync.Mutex
	info      Info
	stamp     string // of the environment when err was determined; "" before the first check
	err       error
	checkedAt time.Time
}

// Proof is proof that an environment passed the checks of a Checker, which holds for any copy of
// the environment, such as that of another container of the same image.
type Proof struct {
	// Paths change when something is installed or removed. Stamp says what they were.
	Paths []string
	Stamp string
}

// Proof returns the proof of the last check; a zero one if that failed.
func (c *Checker) Proof() Proof {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return Proof{}
	}
	return Proof{Paths: c.info.stampPaths, Stamp: c.stamp}
}

// Accept makes the Checker take the environment for checked if the proof holds for it.
func (c *Checker) Accept(p Proof) {
	if p.Stamp != "" && p.Stamp == c.env.stamp(p.Paths) {
		c.info.stampPaths, c.stamp = p.Paths, p.Stamp
	}
}

// NewChecker returns a Checker of the environment. info is the result of Inspect, variables
// are the variables for the Canary.
func NewChecker(env Env, info Info, variables []byte) *Checker {
	return &Checker{env: env, info: info, variables: variables}
}

// Check returns nil if Inspect accepts the environment and the Canary passed. The first
// call, and the first call after something was installed, removed or replaced, runs both,
// which takes about 2 s; other calls look at about ten files. A failure is checked again
// after 10 s, or when the environment has changed. Check does not notice files edited in
// place below the directories of packages. The same fault gives the same error. If ctx has
// ended, Check returns its cause, which says nothing about the environment.
func (c *Checker) Check(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.stamp != "" && c.stamp == c.env.stamp(c.info.stampPaths) && (c.err == nil || time.Since(c.checkedAt) < retryInterval) {
		return c.err
	}
	isRecheck := c.stamp != ""
	err := c.inspectAndTest(ctx)
	if ctx.Err() != nil {
		c.stamp = ""
		return context.Cause(ctx)
	}
	c.err, c.checkedAt = err, time.Now()
	if isRecheck && err == nil {
		logr.FromContextOrDiscard(ctx).Info("the Python environment has changed, and passed the check",
			"ansibleCore", c.info.AnsibleCore, "ansibleRunner", c.info.AnsibleRunner)
	}
	return err
}

// inspectAndTest inspects the environment until it did not change during the inspection,
// and then runs the Canary.
func (c *Checker) inspectAndTest(ctx context.Context) error {
	for range maxInspections {
		c.stamp = c.env.stamp(c.info.stampPaths)
		if err := c.env.sameInterpreter(); err != nil {
			return err
		}
		info, err := c.env.Inspect(ctx)
		if err != nil {
			return err
		}
		c.info = info
		if c.env.stamp(info.stampPaths) == c.stamp {
			return c.env.Canary(ctx, c.variables)
		}
	}
	return fmt.Errorf("the Python environment %q can't be tried: %w", c.env.Bin, errChanging)
}

// stamp returns a text that changes when a program of the environment or one of the paths is
// replaced, installed or removed.
func (e Env) stamp(paths []string) string {
	var text strings.Builder
	for _, path := range slices.Concat([]string{e.Python, e.Runner, filepath.Join(e.Bin, playbookName)}, paths) {
		info, err := os.Stat(path)
		if err != nil {
			fmt.Fprintf(&text, "%q is missing\n", path)
			continue
		}
		fmt.Fprintf(&text, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	}
	return text.String()
}

// sameInterpreter returns an error if ansible-runner runs on another Python than when the
// environment was found.
func (e Env) sameInterpreter() error {
	python, err := Search{Environ: e.environ}.interpreter(e)
	if err == nil && python != e.Python {
		err = fmt.Errorf("its Python was %q and is %q: restart the operator", e.Python, python)
	}
	if err != nil {
		return fmt.Errorf("the Python environment %q can't be used: %w", e.Bin, err)
	}
	return nil
}
