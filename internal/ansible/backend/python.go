package backend

import (
	"context"
	"sync"

	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/internal/config"
)

// Python finds the Python environment of runs, once, when something needs it.
type Python struct {
	mu    sync.Mutex
	found bool
	env   pyenv.Env
	info  pyenv.Info
}

// Find returns the environment that the settings name, which is the same at each call. o has
// Ansible's settings.
func (p *Python) Find(ctx context.Context, o config.Options) (pyenv.Env, pyenv.Info, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found {
		return p.env, p.info, nil
	}
	env, err := findPython(ctx, o)
	if err != nil {
		return pyenv.Env{}, pyenv.Info{}, err
	}
	info, err := env.Inspect(ctx)
	if err != nil {
		return pyenv.Env{}, pyenv.Info{}, err
	}
	p.found, p.env, p.info = true, env, info
	return env, info, nil
}

// findPython returns the environment that the settings name, with a locale in UTF-8.
func findPython(ctx context.Context, o config.Options) (pyenv.Env, error) {
	env, err := pyenv.Find(pyenv.Search{Dir: o.Dir, Executable: o.Executable, Environ: o.Env.List()})
	if err != nil {
		return pyenv.Env{}, err
	}
	if env.VirtualEnvError != "" {
		o.Logger.Info("WARNING: the Python environment that VIRTUAL_ENV names cannot be used, so runs use another one; install ansible-runner and ansible-core in it, or unset VIRTUAL_ENV",
			"reason", env.VirtualEnvError, "used", env.Bin)
	}
	env, replaced := env.WithUTF8Locale(ctx)
	if len(replaced) > 0 {
		o.Logger.Info("WARNING: runs use the locale C.UTF-8, because these environment variables name a locale that is not installed or not in UTF-8", "variables", replaced)
	}
	return env, nil
}
