package action

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"

	records "github.com/ensign-operator/ensign/internal/chart/release"
)

// upgrade makes a new revision. Conflicts of server-side apply are forced, so that a client that
// scaled an object does not stop every upgrade. If the upgrade fails, the objects go back to the
// deployed revision.
func (r *run) upgrade(ctx context.Context) error {
	if err := r.takeFormerHooks(ctx); err != nil {
		return fmt.Errorf("take over objects that were hooks: %w", err)
	}
	a := action.NewUpgrade(r.config)
	a.Namespace, a.MaxHistory, a.ResetValues = r.Namespace, r.MaxHistory, true
	a.Labels, a.Description, a.DisableHooks = r.labels(), r.Description, r.DisableHooks
	a.SkipCRDs, a.SkipSchemaValidation, a.DisableOpenAPIValidation, a.TakeOwnership = true, true, true, r.Adopt
	a.ServerSideApply, a.ForceConflicts = strconv.FormatBool(!r.ApplyByClient), !r.ApplyByClient
	r.client.Replace = r.Force
	a.WaitStrategy, a.Timeout = r.waitStrategy(), r.Timeout
	made, err := a.RunWithContext(ctx, r.Name, r.chart, r.Values)
	if failed, ok := made.(*release.Release); err != nil && ok && failed != nil && failed.Info.Status == common.StatusFailed {
		if back := r.rollback(); back != nil {
			return fmt.Errorf("%w; and the rollback failed: %w", err, back)
		}
	}
	return err
}

// takeFormerHooks turns hooks of the deployed revision into objects of the release, if the chart now
// renders them as such. Helm does not set its label and annotations on hooks, and refuses an object
// without these. takeFormerHooks renders the chart only if the deployed revision has hooks.
func (r *run) takeFormerHooks(ctx context.Context) error {
	deployed, err := r.deployed()
	if deployed == nil || len(deployed.Hooks) == 0 {
		return err
	}
	text, err := r.wanted(ctx)
	if err != nil {
		return nil //nolint:nilerr // Helm says so when it renders the chart.
	}
	wanted, err := r.client.Build(strings.NewReader(text), false)
	if err != nil {
		return nil //nolint:nilerr // As above.
	}
	for _, hook := range deployed.Hooks {
		former, err := r.client.Build(strings.NewReader(hook.Manifest), false)
		if err != nil {
			continue // A kind that is not served any more.
		}
		if err := r.client.TakeHooks(wanted.Intersect(former)); err != nil {
			return err
		}
	}
	return nil
}

// deployed returns the deployed revision; nil and no error if there is none.
func (r *run) deployed() (*records.Release, error) {
	found, err := r.config.Releases.Deployed(r.Name)
	if errors.Is(err, driver.ErrNoDeployedReleases) {
		return nil, nil //nolint:nilnil // See above.
	}
	if err != nil {
		return nil, err
	}
	return records.Of(found)
}

// rollback rolls back to the deployed revision, if there is one.
func (r *run) rollback() error {
	deployed, err := r.deployed()
	if deployed == nil {
		return err
	}
	a := action.NewRollback(r.config)
	a.Version, a.MaxHistory, a.DisableHooks = deployed.Version, r.MaxHistory, r.DisableHooks
	a.ServerSideApply, a.ForceConflicts = strconv.FormatBool(!r.ApplyByClient), !r.ApplyByClient
	r.client.Replace, r.client.Until = r.RollbackForce, time.Now().Add(r.Timeout) // The upgrade may have waited to the end of its time.
	a.WaitStrategy, a.Timeout = kube.HookOnlyStrategy, r.Timeout
	return a.Run(r.Name)
}
