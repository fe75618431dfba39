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
	// proofPause is how long a failure stands for an environment that has not
	// changed. What has failed for want of memory or disk may do then.
	proofPause = 10 * time.Second
	// proofTries bounds the inspections of an environment that is being changed.
	proofTries = 3
)

var errUnsteady = errors.New("it is being changed")

// Proof reports whether an environment is usable and safe, also after it has
// changed. It must be made by NewProof; Holds may be called at the same time.
type Proof struct {
	env       Env
	variables []byte

	mu    sync.Mutex
	info  Info
	stamp string // of the environment that err is about; "" before the first
	err   error
	tried time.Time
}

// NewProof makes a proof of an environment of which Inspect has told info, by a
// canary with these variables.
func NewProof(env Env, info Info, variables []byte) *Proof {
	return &Proof{env: env, info: info, variables: variables}
}

// Holds is nil while the environment is one that Inspect accepts and in which the
// canary came through. The first call, and the first one after something was
// installed, removed or replaced, finds that out, which takes about 2 s; others
// look at some ten files. What has failed is tried again 10 s later, or as soon as
// the environment is another. Files that were edited in place, below directories
// of packages, are not noticed. The error is the same for the same fault, and the
// cause of ctx when that ended first: then nothing is known.
func (p *Proof) Holds(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.stamp != "" && p.stamp == p.env.stamp(p.info.marks) && (p.err == nil || time.Since(p.tried) < proofPause) {
		return p.err
	}
	again := p.stamp != ""
	err := p.prove(ctx)
	if ctx.Err() != nil {
		p.stamp = ""
		return context.Cause(ctx)
	}
	p.err, p.tried = err, time.Now()
	if again && err == nil {
		logr.FromContextOrDiscard(ctx).Info("the Python environment has changed, and does",
			"ansibleCore", p.info.AnsibleCore, "ansibleRunner", p.info.AnsibleRunner)
	}
	return err
}

// prove inspects the environment until that took place between two equal stamps,
// so that it is one state of it that was seen, and then runs the canary.
func (p *Proof) prove(ctx context.Context) error {
	for range proofTries {
		p.stamp = p.env.stamp(p.info.marks)
		if err := p.env.sameInterpreter(); err != nil {
			return err
		}
		info, err := p.env.Inspect(ctx)
		if err != nil {
			return err
		}
		p.info = info
		if p.env.stamp(info.marks) == p.stamp {
			return p.env.Canary(ctx, p.variables)
		}
	}
	return fmt.Errorf("the Python environment %q can't be tried: %w", p.env.Bin, errUnsteady)
}

// stamp stands for the programs of the environment and for the marks: equal
// stamps, nothing installed, removed or replaced.
func (e Env) stamp(marks []string) string {
	var text strings.Builder
	for _, path := range slices.Concat([]string{e.Python, e.Runner, filepath.Join(e.Bin, playbookName)}, marks) {
		info, err := os.Stat(path)
		if err != nil {
			fmt.Fprintf(&text, "%q is missing\n", path)
			continue
		}
		fmt.Fprintf(&text, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	}
	return text.String()
}

// sameInterpreter is an error when ansible-runner runs on another Python than
// when the environment was found.
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
