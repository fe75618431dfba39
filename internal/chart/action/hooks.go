package action

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"

	"github.com/ensign-operator/ensign/internal/chart/action/helmclient"
	"github.com/ensign-operator/ensign/internal/chart/order"
)

const generateName = "generateName"

// refuseHooks returns an error if the chart renders a hook without a name. Helm would fail at it only
// after other hooks have run. It renders the chart only if that could have such a hook.
func (r *run) refuseHooks(ctx context.Context) error {
	if r.DisableHooks || !r.couldGenerateNames() {
		return nil
	}
	hooks, _, err := r.sorted(ctx, r.options(1))
	if err != nil {
		return nil //nolint:nilerr // Helm renders it again, after it has brought the chart's CRDs, and says so then.
	}
	var errs []error
	for _, hook := range hooks {
		isTest := slices.Contains(hook.Events, release.HookTest) && len(hook.Events) == 1 // It never runs.
		if hook.Name == "" && strings.Contains(hook.Manifest, generateName) && !isTest {
			errs = append(errs, fmt.Errorf("%s: %w", hook.Path, helmclient.Nameless(hook.Kind)))
		}
	}
	if len(errs) > 0 {
		return &RefusedError{Of: order.RefusedOfChart, text: errors.Join(errs...).Error()}
	}
	return nil
}

// options are those of a rendering for the action that makes the revision.
func (r *run) options(revision int) common.ReleaseOptions {
	upgrade := r.Action == order.Upgrade
	return common.ReleaseOptions{Name: r.Name, Namespace: r.Namespace, Revision: revision, IsInstall: !upgrade, IsUpgrade: upgrade}
}

// sorted returns the hooks and the objects that the chart renders, in Helm's order.
func (r *run) sorted(ctx context.Context, options common.ReleaseOptions) ([]*release.Hook, []releaseutil.Manifest, error) {
	files, err := r.render(ctx, options)
	if err != nil {
		return nil, nil, err
	}
	for name := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(files, name)
		}
	}
	return releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
}

// manifestOf returns the manifest with the objects, as Helm writes it.
func manifestOf(objects []releaseutil.Manifest) string {
	var text strings.Builder
	for _, one := range objects {
		fmt.Fprintf(&text, "---\n# Source: %s\n%s\n", one.Name, one.Content)
	}
	return text.String()
}

// couldGenerateNames reports whether the chart, its dependencies or the values contain generateName.
func (r *run) couldGenerateNames() bool {
	values, err := json.Marshal(r.Values)
	return err != nil || bytes.Contains(values, []byte(generateName)) || mentions(r.chart, []byte(generateName))
}

func mentions(c *chart.Chart, word []byte) bool {
	return slices.ContainsFunc(c.Raw, func(f *common.File) bool { return bytes.Contains(f.Data, word) }) ||
		slices.ContainsFunc(c.Dependencies(), func(c *chart.Chart) bool { return mentions(c, word) })
}
