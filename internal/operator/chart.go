package operator

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	ansible "github.com/ensign-operator/ensign/internal/ansible/engine"
	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	chart "github.com/ensign-operator/ensign/internal/chart/engine"
	"github.com/ensign-operator/ensign/internal/chart/runner"
	"github.com/ensign-operator/ensign/internal/observe/coldruns"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// chartExec is the name of the program that runs Helm's actions. It is beside the manager's.
const chartExec = "chart-exec"

// chart returns what keeps the releases of the watch.
func (c components) chart(watch watches.Watch, observers []ansible.Observer) (content.Engine, error) {
	binary := filepath.Join(filepath.Dir(c.options.Executable), chartExec)
	if _, err := os.Stat(binary); err != nil {
		return nil, fmt.Errorf("the watch of %s has a chart, which needs the program %s beside the manager's: %w", watch.GVK.GroupKind(), chartExec, err)
	}
	r := &runner.Runner{
		Root: c.ansible.runner.Root, Reaper: c.ansible.runner.Reaper, Binary: binary,
		Env: c.options.Env.List(), DropEnv: c.options.DropEnv, Ready: c.checkLease,
	}
	engine, err := chart.New(watch, chartRunner{r}, chartObservers(observers), c.manager.GetRESTMapper(), c.sealKeys)
	if err != nil {
		return nil, err
	}
	engine.Recorder, engine.SuppressOverrides = c.events, c.options.SuppressOverrideValues
	return engine, nil
}

// warnOfTemplates warns of a watch that lets CRs have templates.
func warnOfTemplates(log logr.Logger, watch watches.Watch) {
	const danger = "whoever may write such a resource can have templates evaluated there"
	switch {
	case watch.Chart == nil:
	case watch.Chart.AllTemplates:
		log.Info("WARNING: templatesInSpec is true: "+danger+", which may look up every object that this operator may read", "gvk", watch.GVK.String(), "line", watch.Line)
	case len(watch.Chart.TemplatesInSpec) > 0:
		log.Info("WARNING: templatesInSpec has paths: "+danger, "gvk", watch.GVK.String(), "line", watch.Line, "paths", watch.Chart.TemplatesInSpec)
	}
}

// chartRunner adds to a runner the removal of run directories.
type chartRunner struct{ *runner.Runner }

// Remove implements chart.Runner.
func (r chartRunner) Remove(uid string) error { return r.Root.Remove(uid) }

// chartObservers are the observers of runs that also watch those of charts, which have no
// job events and are never warm.
type chartObservers []ansible.Observer

// Started implements chart.Observer.
func (o chartObservers) Started(run content.Run) {
	for _, observer := range o.relevant() {
		observer.RunStarted(run)
	}
}

// Ended implements chart.Observer.
func (o chartObservers) Ended(run content.Run, outcome content.Outcome, elapsed time.Duration) {
	for _, observer := range o.relevant() {
		observer.RunEnded(run, outcome, jobevent.Summary{}, elapsed)
	}
}

// Forget implements chart.Observer.
func (o chartObservers) Forget(watch schema.GroupVersionKind, object string) {
	for _, observer := range o.relevant() {
		if f, remembers := observer.(ansible.Forgetter); remembers {
			f.Forget(watch, object)
		}
	}
}

func (o chartObservers) relevant() []ansible.Observer {
	var all []ansible.Observer
	for _, observer := range o {
		if _, warmth := observer.(*coldruns.Observer); !warmth {
			all = append(all, observer)
		}
	}
	return all
}
