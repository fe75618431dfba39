// Package action carries out an order with Helm's actions. Only the program chart-exec
// imports it: Helm's action package costs the manager's binary 46 MB and everyone's memory
// 50 MiB, and a template can loop forever.
//
// It does not decide what is to be done.
package action

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/ensign-operator/ensign/internal/chart/action/helmclient"
	"github.com/ensign-operator/ensign/internal/chart/manifest"
	"github.com/ensign-operator/ensign/internal/chart/objects"
	"github.com/ensign-operator/ensign/internal/chart/order"
	records "github.com/ensign-operator/ensign/internal/chart/release"
)

// Run carries out the order at the API server of the kubeconfig. report is called with each step, and
// with the remaining objects. Log lines of Helm go to text.
func Run(ctx context.Context, o order.Order, kubeconfig string, text io.Writer, report func(order.Record)) error {
	kube.ManagedFieldsManager = objects.FieldManager
	r, err := newRun(o, kubeconfig, text)
	if err != nil {
		return err
	}
	r.client.Left = func(what string) { report(order.Record{Left: what}) }
	working := func(step string) { report(order.Record{Working: step}) }
	r.client.Working = working
	if r.TakeOver {
		working("take over")
		if err := r.driver.TakeOver(ctx, r.Action, func(manifests []string) (string, error) { return r.base(ctx, manifests) }); err != nil {
			return err
		}
	}
	return withRemedy(r.cause(r.execute(ctx, working)))
}

// withRemedy adds to Helm's error about an object that belongs to no release how the release can have it.
func withRemedy(err error) error {
	if err == nil || !strings.Contains(err.Error(), "cannot be imported into the current release") || !strings.Contains(err.Error(), `missing key "meta.helm.sh/release-name"`) {
		return err
	}
	return fmt.Errorf("%w. If it belongs to nobody, adopt: true in the watch takes it over", err)
}

// cause returns the RefusedError that Helm has turned into err, or err itself.
func (r *run) cause(err error) error {
	for _, e := range r.evaluators {
		if err != nil && e.refused != nil {
			return e.refused
		}
	}
	return err
}

func (r *run) execute(ctx context.Context, working func(string)) error {
	switch r.Action {
	case order.Uninstall:
		working("uninstall")
		return r.uninstall(true)
	case order.Reinstall:
		working("uninstall")
		if err := r.uninstall(false); err != nil {
			return err
		}
	}
	return r.deploy(ctx, working)
}

func (r *run) deploy(ctx context.Context, working func(string)) (err error) {
	working("load")
	if r.chart, err = loader.Load(r.Chart); err != nil {
		return fmt.Errorf("load the chart: %w", err)
	}
	r.config.CustomTemplateFuncs = r.evaluate(ctx, r.chart)
	if r.IfChanged {
		working("render")
		if changed, err := r.changed(ctx); err != nil || !changed {
			return err
		}
	}
	if err := r.refuseHooks(ctx); err != nil {
		return err
	}
	if r.Adopt {
		working("look for objects of other releases")
		if err := r.refuseOthers(ctx); err != nil {
			return err
		}
	}
	if r.ReplaceCRDs {
		if err := r.replaceCRDs(); err != nil {
			return err
		}
	}
	if _, err := r.capabilities(); err != nil { // Helm itself would ask once more.
		return err
	}
	if r.Action == order.Upgrade {
		working("upgrade")
		return r.upgrade(ctx)
	}
	working("install")
	return r.install(ctx)
}

// run executes one order.
type run struct {
	order.Order

	config  *action.Configuration
	client  *helmclient.Client
	driver  *records.Driver
	cluster *manifest.Cluster
	chart   *chart.Chart
	// evaluators are those of each rendering.
	evaluators []*evaluator
}

// evaluate returns the functions for rendering the chart.
func (r *run) evaluate(ctx context.Context, c *chart.Chart) template.FuncMap {
	e := newEvaluator(ctx, r.Order, c)
	r.evaluators = append(r.evaluators, e)
	return e.templateFuncs()
}

func newRun(o order.Order, kubeconfig string, text io.Writer) (*run, error) {
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &kubeconfig, &o.Namespace
	flags.WrapConfigFn = func(c *rest.Config) *rest.Config {
		c.QPS = -1 // The API server has priority and fairness.
		return c
	}
	logs := funcr.New(func(_, line string) { fmt.Fprintln(text, line) }, funcr.Options{})
	r := &run{Order: o, config: action.NewConfiguration(action.ConfigurationSetLogger(logr.ToSlogHandler(logs)))}
	if err := r.config.Init(flags, o.Namespace, "secret"); err != nil {
		return nil, fmt.Errorf("prepare Helm: %w", err)
	}
	if err := r.connect(flags); err != nil {
		return nil, fmt.Errorf("prepare Helm: %w", err)
	}
	helm, ok := r.config.KubeClient.(*kube.Client)
	if !ok {
		return nil, fmt.Errorf("prepare Helm: unexpected type of its client: %T", r.config.KubeClient)
	}
	r.client = &helmclient.Client{
		Client: helm, Objects: r.cluster.Client, Timeout: o.Timeout, Until: time.Now().Add(o.Timeout),
		Applier: objects.Applier{Name: o.Name, Namespace: o.Namespace, Owner: types.UID(o.Seal.Owner.UID), Ignored: objects.NewIgnored(o.DriftIgnore), ByClient: o.ApplyByClient},
	}
	r.client.Own = func(live metav1.Object) bool { return records.Linked(live, o.Seal.Owner) }
	r.client.Owners, r.client.Adopt = records.Owners, o.Adopt
	r.config.KubeClient = r.client
	return r, nil
}

// connect replaces Helm's storage by one that seals records, and finds the API server.
func (r *run) connect(flags *genericclioptions.ConfigFlags) error {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return err
	}
	mapper, err := flags.ToRESTMapper()
	if err != nil {
		return err
	}
	if r.cluster, err = manifest.NewCluster(config, mapper, r.Namespace); err != nil {
		return err
	}
	found, err := records.NewRecords(config, r.Namespace, r.Name, r.Seal, r.Revisions)
	if err != nil {
		return err
	}
	r.driver = records.NewDriver(found)
	r.driver.Attempt, r.driver.Manifest = r.Attempt, r.served
	r.config.Releases = storage.Init(r.driver)
	return r.reportTo(config)
}

// reportTo has the driver tell the manager of each revision, by the API proxy of the run, which answers when the
// ledger has it.
func (r *run) reportTo(config *rest.Config) error {
	core, err := clientv1.NewForConfig(config)
	if err != nil {
		return err
	}
	r.driver.Report = func(ctx context.Context, revision order.Revision) error {
		body, err := json.Marshal(revision)
		if err != nil {
			return err
		}
		return core.RESTClient().Post().AbsPath(order.ReportPath).Body(body).Do(ctx).Error()
	}
	return nil
}

func (r *run) labels() map[string]string { return map[string]string{order.DigestLabel: r.Digest} }

func (r *run) waitStrategy() kube.WaitStrategy {
	if r.Wait {
		return kube.StatusWatcherStrategy
	}
	return kube.HookOnlyStrategy
}
