package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ensign-operator/ensign/internal/chart/ledger"
	"github.com/ensign-operator/ensign/internal/chart/manifest"
	"github.com/ensign-operator/ensign/internal/chart/objects"
	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/release"
	"github.com/ensign-operator/ensign/internal/chart/runner"
	"github.com/ensign-operator/ensign/internal/sanitize"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// site is where a run finds the release: the ledger's entry for it, its records and its cluster.
type site struct {
	config  *rest.Config
	entry   *ledger.Entry
	records *release.Records
	cluster *manifest.Cluster
}

// locate reads the ledger, which says where the release is. The CR's status does not count once the
// ledger knows a release: a tenant may write it.
func (w *work) locate(ctx context.Context) (*ledger.Entry, error) {
	entry, err := w.engine.ledger.Get(ctx, w.seal.Owner)
	switch {
	case err != nil:
		return nil, err
	case entry.Name == "" && w.moved != nil:
		return nil, w.moved
	case entry.Name == "":
	case w.finalizing:
		w.namespace, w.name = entry.Namespace, entry.Name
	case entry.Namespace != w.namespace || entry.Name != w.name:
		return nil, &watches.MovedError{Namespace: entry.Namespace, Name: entry.Name, To: fmt.Sprintf("%s in the namespace %s", watches.Quoted(w.name), watches.Quoted(w.namespace))}
	}
	return entry, nil
}

// recordEnd notes the end of an attempt whose end the ledger does not know. Nothing of the attempt
// executes any more. Its sealed records show how far it came.
func (w *work) recordEnd(ctx context.Context, s *site, all []release.Revision) error {
	states, err := s.records.Sealed(ctx, s.entry.Attempt)
	if err != nil {
		return err
	}
	if last := s.entry.Last(); w.uninstalled && last != nil {
		states[last.Version] = order.StatusUninstalled
	}
	s.entry.Conclude(states, func(version int) bool {
		return slices.ContainsFunc(all, func(r release.Revision) bool { return r.Version == version })
	})
	s.records.Known = s.entry.Revisions
	return w.engine.ledger.Put(ctx, s.entry)
}

// site returns the site of the run with the job.
func (w *work) site(ctx context.Context, job content.Job) (s site, err error) {
	if s.config, err = clientcmd.RESTConfigFromKubeConfig(job.Kubeconfig); err != nil {
		return s, fmt.Errorf("use the kubeconfig of the run: %w", err)
	}
	s.config.QPS, s.config.WarningHandlerWithContext = -1, objects.Warnings{}
	if s.entry, err = w.locate(ctx); err != nil {
		return s, err
	}
	if w.seal.Keys, err = w.engine.keys(ctx); err != nil {
		return s, err
	}
	w.seal.Keys = release.KeysFor(w.seal.Keys, w.seal.Owner)
	if s.records, err = release.NewRecords(s.config, w.namespace, w.name, w.seal, s.entry.Revisions); err != nil {
		return s, err
	}
	s.cluster, err = manifest.NewCluster(s.config, w.engine.Mapper, w.namespace)
	return s, err
}

// found is the state of the release of a CR.
type found struct {
	site
	release.Decision

	history release.History
	// objects returns the objects of the last revision's manifest, which is parsed once. They must not be changed.
	objects  func() ([]*unstructured.Unstructured, error)
	compared objects.Found
	// fault is a temporary error by which objects could not be compared.
	fault       error
	observation observation
	// may has the answers of mayMake.
	may map[kindIn]bool
}

// last returns the last revision that the manager has made; nil if there is none.
func (f found) last() *release.Release { return f.history.Last }

// lookOnce returns the state that Settled has just found, or looks.
func (w *work) lookOnce(ctx context.Context, job content.Job) (found, error) {
	if f := w.looked; f != nil {
		w.looked = nil
		return *f, nil
	}
	return w.look(ctx, job)
}

// look reads the release and, if it is in sync, compares its objects. It changes nothing in the cluster.
func (w *work) look(ctx context.Context, job content.Job) (f found, err error) {
	f.may = map[kindIn]bool{}
	if f.site, err = w.site(ctx, job); err != nil {
		return f, err
	}
	all, err := f.records.List(ctx)
	if err != nil {
		return f, err
	}
	if f.entry.Attempt != "" {
		if err := w.recordEnd(ctx, &f.site, all); err != nil {
			return f, err
		}
	}
	if claims := (release.History{Revisions: all}); w.engine.believes && claims.Claimed(w.seal.Owner) {
		f.records.Believe(all)
	}
	if f.history, err = f.records.Read(ctx, all); err != nil {
		return f, err
	}
	last := f.history.Last
	f.objects = sync.OnceValues(func() ([]*unstructured.Unstructured, error) { return manifest.Parse(last.Manifest) })
	mayTake, err := w.mayTake(ctx, f)
	if err != nil {
		return f, err
	}
	if w.finalizing {
		_, _ = w.readSources(ctx, f.site) // They are not needed, only redacted.
		spec, _ := w.cr.Object["spec"].(map[string]any)
		w.maskPrevious(f.history, spec)
		f.Decision = release.Decide(f.history, "", mayTake)
		return f, nil
	}
	if err := w.readValues(ctx, f.site); err != nil {
		return f, err
	}
	f.observation = w.read
	w.maskPrevious(f.history, w.values.Values)
	f.Decision = release.Decide(f.history, w.values.Digest, mayTake)
	if f.State != release.InSync || w.engine.Watch.Chart.Drift == watches.DriftOff {
		return f, nil
	}
	return w.compare(ctx, f)
}

// compare compares the objects of a release that is in sync. With drift: warn, it stays in sync. A temporary error
// counts only if no other object needs a repair.
func (w *work) compare(ctx context.Context, f found) (found, error) {
	watch := w.engine.Watch.Chart
	desired, err := f.objects()
	if err != nil {
		return f, err
	}
	f.compared, f.fault = w.detector(&f).Find(ctx, desired)
	w.warnOfUnused(ctx, f.compared)
	w.warnOfPatches(ctx, f.compared)
	if watch.Drift == watches.DriftWarn {
		w.warnOfDrift(ctx, f.compared)
		return f, f.fault
	}
	if len(f.compared.Drifted) == 0 {
		return f, f.fault
	}
	f.State = release.Drifted
	return f, nil
}

// mayTake reports whether the manager may take over a release that it has not made: an earlier
// operator made it for the CR, or adopt allows it and no other CR has the release.
func (w *work) mayTake(ctx context.Context, f found) (bool, error) {
	switch {
	case len(f.history.Known) > 0 || len(f.history.Revisions) == 0:
		return false, nil // There is nothing to take.
	case f.history.Claimed(w.seal.Owner):
		return true, nil
	case w.finalizing || !w.engine.Watch.Chart.Adopt:
		return false, nil
	}
	for _, link := range f.history.Links() {
		if link.Namespace != w.cr.GetNamespace() && link.Namespace != w.namespace {
			return false, nil // A user who may write Secrets could ask which objects exist in other namespaces.
		}
		owner := &unstructured.Unstructured{}
		owner.SetGroupVersionKind(link.GroupVersionKind)
		owner.SetNamespace(link.Namespace)
		owner.SetName(link.Name)
		live, _, err := f.cluster.Get(ctx, owner)
		if err != nil {
			return false, fmt.Errorf("look for the owner of release %q: %w", w.name, err)
		}
		if live != nil && (link.UID == "" || live.GetUID() == link.UID) {
			return false, nil
		}
	}
	return true, nil
}

// duplicate returns the error for a release that belongs to another owner.
func (w *work) duplicate(f found) error {
	return fmt.Errorf("duplicate release name: the release %q in namespace %q belongs to %s. Nothing of it is changed. Rename the resource, give another releaseName in watches.yaml, or let it be taken over by adopt: true",
		w.name, w.namespace, f.history.Owners())
}

func (w *work) log(ctx context.Context) logr.Logger {
	return logr.FromContextOrDiscard(ctx).WithValues("release", w.name)
}

// waits returns how long Helm waits for hooks and objects. It is less than the run's timeout, so that
// Helm can report the object that it waited for, and roll back. 0 means 30 s to Helm.
func waits(timeout time.Duration) time.Duration {
	const forever = 10_000 * time.Hour
	if timeout == 0 {
		return forever
	}
	return timeout / 5 * 4
}

// newOrder returns the order for an action, with the settings of the CR's annotations.
func (w *work) newOrder(action order.Action, d release.Decision) order.Order {
	watch, chart := w.engine.Watch, w.engine.Watch.Chart
	kind := action
	if kind == order.Reinstall {
		kind = order.Install
	}
	o := order.Order{
		Action: action, TakeOver: d.TakeOver, Seal: w.seal, Chart: chart.Path, Name: w.name, Namespace: w.namespace,
		Settings: order.Settings{
			MaxHistory: chart.MaxHistory, Wait: chart.Wait, Timeout: waits(watch.Timeout), Adopt: chart.Adopt,
			ApplyByClient: chart.Apply == watches.ApplyClient,
			SkipCRDs:      chart.CRDs == watches.CRDsSkip, ReplaceCRDs: chart.CRDs == watches.CRDsReplace,
			DisableHooks: w.settings.disableHooks[kind], Description: w.settings.descriptions[kind],
			Force: w.settings.upgradeForce, RollbackForce: w.settings.rollbackForce,
			DriftIgnore: chart.DriftIgnore,
		},
	}
	if action != order.Uninstall {
		o.Values, o.Digest = w.values.Values, w.values.Digest
		o.Templates = order.Templates{All: chart.AllTemplates, Trusted: w.values.Trusted, Untrusted: w.values.Untrusted, Secret: w.secret()}
	}
	return o
}

// runOf returns the run of an order.
func (w *work) runOf(ctx context.Context, job content.Job, o order.Order) runner.Spec {
	return runner.Spec{
		UID: string(w.cr.GetUID()), Watch: job.Run.Watch.String(), CR: job.Run.Object, ID: job.Run.ID, Kubeconfig: job.Kubeconfig,
		Order: o, Timeout: w.engine.Watch.Timeout, Working: job.Working, Left: func(what string) { w.warnLeft(ctx, sanitize.Text(what)) }, Hidden: w.mask,
	}
}
