package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	ansible "github.com/ensign-operator/ensign/internal/ansible/backend"
	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	charts "github.com/ensign-operator/ensign/internal/chart/backend"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/jobs/agent"
	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/internal/run/custom"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/pkg/options"
)

// AgentCommand is the argument by which the program is called in the pods of Jobs.
const AgentCommand = wire.Command

// RunAgent executes the run of the Job whose pod this is, and hands its result to the manager. engines are those
// of the program.
func RunAgent(ctx context.Context, log logr.Logger, engines map[schema.GroupVersionKind]content.Engine) error {
	env := config.NewEnvironment(os.Environ())
	for _, name := range []string{wire.EnvAddress, wire.EnvKey} {
		if env[name] == "" {
			return errors.New(name + " is not set: a manager starts agents, in the pods of Jobs")
		}
	}
	file := func(name, usual string) string {
		if path, ok := env.Lookup(name); ok {
			return path
		}
		return usual
	}
	return agent.Run(ctx, agent.Options{
		Addresses: env[wire.EnvAddress], PublicKey: env[wire.EnvKey],
		TokenFile: file(wire.EnvTokenFile, wire.TokenFile), TerminationFile: file(wire.EnvTerminationFile, wire.TerminationFile),
		NewProgram: func(ctx context.Context, a wire.Assignment, environ []string) (run.Program, func() error, error) {
			var s agentSettings
			if err := json.Unmarshal(a.Settings, &s); err != nil {
				return nil, nil, fmt.Errorf("read the settings of the run: %w", err)
			}
			if s.Custom != nil {
				engine := engines[*s.Custom]
				if engine == nil {
					return nil, nil, fmt.Errorf("the program has no engine for %s: give ensign.RunAgent its watch", s.Custom)
				}
				return custom.Program(engine), func() error { return nil }, nil
			}
			r, closeRunner, err := newAgentRunner(ctx, s, environ, log)
			if err != nil {
				return nil, nil, err
			}
			return r.Execute, closeRunner, nil
		},
		Logger: log,
	})
}

// agentRunner has a run.Program.
type agentRunner interface {
	Execute(ctx context.Context, spec run.Spec, emit func(event []byte)) run.Result
}

// newAgentRunner returns the runner that executes one run in the pod of a Job, as a manager with
// these settings would do it.
func newAgentRunner(ctx context.Context, s agentSettings, environ []string, log logr.Logger) (_ agentRunner, closeRunner func() error, err error) {
	dir, err := os.MkdirTemp("", "ensign-run-")
	if err != nil {
		return nil, nil, err
	}
	end := func() error { return os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			err = errors.Join(err, end())
		}
	}()
	o, err := agentOptions(s, append(os.Environ(), environ...), dir, log)
	if err != nil {
		return nil, nil, err
	}
	dirs, err := openRunDirs(o)
	if err != nil {
		return nil, nil, err
	}
	end = func() error { return errors.Join(dirs.Close(), os.RemoveAll(dir)) }
	if s.Chart {
		r, err := charts.NewAgent(o, dirs)
		return r, end, err
	}
	r, err := ansible.NewAgent(ctx, o, s.Python, dirs)
	return r, end, err
}

// agentOptions returns the options of a manager with these settings that has one run, in runDir.
func agentOptions(s agentSettings, environ []string, runDir string, log logr.Logger) (config.Options, error) {
	settings, err := options.Options{
		Dir: s.Dir, Environ: environ, RunDir: runDir, Cold: true,
		DropEnv:          append(s.DropEnv, wire.EnvAddress, wire.EnvKey, wire.EnvTokenFile, wire.EnvTerminationFile),
		AnsibleRolesPath: s.AnsibleRolesPath, AnsibleCollectionsPath: s.AnsibleCollectionsPath, AnsibleArgs: s.AnsibleArgs, RunIdleTimeout: s.RunIdleTimeout,
		SettingName: agentSettingName,
	}.WithDefaults()
	o := config.Of(settings, log)
	o.WatchesFile = s.WatchesFile
	return o.WithAnsibleSettings(), err
}

// agentSettingName returns how messages name a setting where a run has a pod of its own.
func agentSettingName(field string) string {
	switch field {
	case "MaxConcurrentRuns":
		return "" // There is one.
	case "RunDir":
		return "a volume at /tmp (job.podTemplate)"
	}
	return "job.podTemplate"
}

// agentSettings are the settings of this manager that agents need. Fields are named and mean the same as
// those of options.Options, whose paths are absolute. Other settings come from the environment and the
// files of the pod.
type agentSettings struct {
	Dir, WatchesFile                         string
	AnsibleRolesPath, AnsibleCollectionsPath string
	AnsibleArgs                              string
	DropEnv                                  []string
	RunIdleTimeout                           time.Duration

	// Custom is the kind of a run whose engine the program brings; nil: it is none. Chart is true if the
	// run is that of a chart.
	Custom *schema.GroupVersionKind
	Chart  bool
	// Python proves the manager's Python environment. An agent with the same environment need not prove
	// it again.
	Python pyenv.Proof
}

func agentSettingsOf(o config.Options) agentSettings {
	return agentSettings{
		Dir: o.Dir, WatchesFile: o.WatchesFile, DropEnv: o.DropEnv,
		AnsibleRolesPath: o.AnsibleRolesPath, AnsibleCollectionsPath: o.AnsibleCollectionsPath, AnsibleArgs: o.AnsibleArgs, RunIdleTimeout: o.RunIdleTimeout,
	}
}
