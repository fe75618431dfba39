package operator

import (
	"context"

	ansible "github.com/ensign-operator/ensign/internal/ansible/backend"
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// ansibleBackend has the watches of roles and playbooks.
type ansibleBackend struct {
	*ansible.Backend

	all *components
}

func newAnsibleBackend(m *Manager) *ansibleBackend {
	return &ansibleBackend{Backend: &ansible.Backend{Options: m.options, Python: m.python, Ready: m.lease.Check}}
}

func (*ansibleBackend) claims(w Watch) bool { return w.Engine == nil && isAnsible(w.Watch) }
func (a *ansibleBackend) keepsServer() bool { return a.KeepsServer() }
func (a *ansibleBackend) close() error      { return a.Close() }

// isAnsible reports whether the content of the watch is a role or playbook.
func isAnsible(w watches.Watch) bool { return !isChart(w) && w.Custom == nil }

func (a *ansibleBackend) prepare(ctx context.Context, list []Watch, at process.Dirs) error {
	return a.Prepare(ctx, plain(list), at)
}

// connect adds the endpoint for metrics of roles. Then the environment of runs is complete.
func (a *ansibleBackend) connect(c *components) error {
	a.all = c
	more, err := a.Connect(ansible.Host{Registerer: c.registerer, Observers: c.observers, SetCold: c.counters.SetWatchCold})
	if err != nil {
		return err
	}
	c.observers = append(c.observers, more...)
	env, err := c.addUserMetrics()
	if err != nil {
		return err
	}
	a.PrepareRuns(env...)
	return nil
}

// engine returns the engine that runs the role or playbook of the watch.
func (a *ansibleBackend) engine(w Watch) (content.Engine, error) {
	e, settings := a.Engine(w.Watch), agentSettingsOf(a.Options)
	settings.Python = a.Proof()
	var err error
	e.Jobs, err = a.all.inJobsOf(w.Watch, settings)
	return e, err
}
