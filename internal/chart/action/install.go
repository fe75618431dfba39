package action

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release/common"
	"helm.sh/helm/v4/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/api/meta"

	records "github.com/ensign-operator/ensign/internal/chart/release"
)

// install installs the release. After a failed installation it keeps the existing objects, so that
// their data are not lost.
func (r *run) install(ctx context.Context) error {
	again, err := r.afterFailure(ctx)
	if err != nil {
		return fmt.Errorf("go on after an installation that failed: %w", err)
	}
	a := action.NewInstall(r.config)
	a.ReleaseName, a.Namespace, a.Replace = r.Name, r.Namespace, true
	a.Labels, a.Description, a.DisableHooks = r.labels(), r.Description, r.DisableHooks
	a.SkipCRDs, a.TakeOwnership = r.SkipCRDs || r.ReplaceCRDs, r.Adopt
	a.ServerSideApply, a.ForceConflicts = !r.ApplyByClient, (r.Adopt || again) && !r.ApplyByClient
	a.WaitStrategy, a.Timeout = r.waitStrategy(), r.Timeout
	a.SkipSchemaValidation, a.DisableOpenAPIValidation = true, true // The manager has checked the values, and the API server checks the objects.
	r.config.Releases.MaxHistory = r.MaxHistory
	r.client.Replace = again // An object that cannot be changed has never worked.
	_, err = a.RunWithContext(ctx, r.chart, r.Values)
	return err
}

// afterFailure reports whether the last installation failed. It deletes the objects of that
// installation that the chart no longer renders.
func (r *run) afterFailure(ctx context.Context) (bool, error) {
	found, err := r.config.Releases.Last(r.Name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	last, err := records.Of(found)
	if err != nil || last.Info.Status == common.StatusUninstalled {
		return false, err
	}
	text, err := r.wanted(ctx)
	if err != nil {
		return false, err
	}
	wanted, err := r.client.Build(strings.NewReader(text), false)
	if meta.IsNoMatchError(err) {
		return true, nil // The installation brings the CRDs of the chart.
	}
	if err != nil {
		return false, err
	}
	if r.client.Former, err = r.client.Build(strings.NewReader(last.Manifest), false); err != nil {
		return false, err
	}
	_, err = r.client.Update(r.client.Former.Difference(wanted), kube.ResourceList{})
	return true, err
}
