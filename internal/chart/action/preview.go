package action

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	release "helm.sh/helm/v4/pkg/release/v1"

	"github.com/ensign-operator/ensign/internal/chart/manifest"
	"github.com/ensign-operator/ensign/internal/chart/order"
)

// Preview writes an order.Rendered: the output of the chart for the revision of the order. Its only
// requests to the API server are those of templates. It changes nothing.
func Preview(ctx context.Context, o order.Order, kubeconfig string, out io.Writer) error {
	events := []release.HookEvent{release.HookPreUpgrade, release.HookPostUpgrade}
	o.Action = order.Upgrade
	if o.Revision == 1 {
		o.Action, events = order.Install, []release.HookEvent{release.HookPreInstall, release.HookPostInstall}
	}
	r, err := newRun(o, kubeconfig, io.Discard)
	if err != nil {
		return err
	}
	if r.chart, err = loader.Load(r.Chart); err != nil {
		return fmt.Errorf("load the chart: %w", err)
	}
	if err := r.fits(); err != nil {
		return err
	}
	if err := r.refuseHooks(ctx); err != nil {
		return err
	}
	rendered, err := r.twice(ctx, events)
	if err != nil {
		return r.cause(err)
	}
	if r.ReplaceCRDs || o.Action == order.Install && !r.SkipCRDs {
		for _, crd := range r.chart.CRDObjects() {
			rendered.CRDs += "---\n" + string(crd.File.Data) + "\n"
		}
	}
	return json.NewEncoder(out).Encode(rendered)
}

// fits returns an error if the chart requires another version of Kubernetes.
func (r *run) fits() error {
	capabilities, err := r.capabilities()
	if err != nil {
		return err
	}
	if wanted := r.chart.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, capabilities.KubeVersion.String()) {
		return fmt.Errorf("the chart requires Kubernetes %s, and the cluster has %s", wanted, capabilities.KubeVersion.String())
	}
	return nil
}

// twice renders the chart twice, with the hooks of the events.
func (r *run) twice(ctx context.Context, events []release.HookEvent) (rendered order.Rendered, err error) {
	for i := range rendered.Manifests {
		hooks, objects, err := r.sorted(ctx, r.options(r.Revision))
		if err != nil {
			return rendered, err
		}
		rendered.Manifests[i] = manifestOf(objects)
		if i == 0 && !r.DisableHooks {
			rendered.Hooks = named(hooks, events)
		}
	}
	return rendered, nil
}

// named returns the hooks of the events, in the order in which Helm runs them.
func named(hooks []*release.Hook, events []release.HookEvent) (all []order.Hook) {
	hooks = slices.Clone(hooks)
	slices.SortStableFunc(hooks, func(a, b *release.Hook) int { return cmp.Or(a.Weight-b.Weight, strings.Compare(a.Name, b.Name)) })
	for _, event := range events {
		for _, hook := range hooks {
			name := hook.Kind + " " + hook.Name
			if objects, err := manifest.Parse(hook.Manifest); err == nil && len(objects) == 1 {
				name = manifest.Name(objects[0])
			}
			if slices.Contains(hook.Events, event) {
				all = append(all, order.Hook{Event: string(event), Name: name})
			}
		}
	}
	return all
}
