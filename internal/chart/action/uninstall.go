package action

import (
	"errors"
	"fmt"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/release/common"
	"helm.sh/helm/v4/pkg/storage/driver"

	records "github.com/ensign-operator/ensign/internal/chart/release"
)

// uninstall runs the hooks of a deletion and deletes the objects of the last revision. With
// keepHistory, the record says "uninstalled" only if Helm met no error, also in hooks and waits: Helm
// itself writes it before it returns these errors. The manager finds objects that Helm has left. A
// record that is gone, for example with its namespace, is not an error.
func (r *run) uninstall(keepHistory bool) error {
	err := r.uninstallRecorded(keepHistory)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil
	}
	return err
}

func (r *run) uninstallRecorded(keepHistory bool) error {
	// Helm takes any error of its history for a release that is not there.
	if _, err := r.config.Releases.Last(r.Name); err != nil {
		return err
	}
	a := action.NewUninstall(r.config)
	a.KeepHistory, a.DisableHooks, a.Description = keepHistory, r.DisableHooks, r.Description
	a.WaitStrategy, a.Timeout = r.waitStrategy(), r.Timeout
	r.driver.Uninstalling(true)
	_, err := a.Run(r.Name)
	r.driver.Uninstalling(false)
	if len(r.client.Undeleted) > 0 {
		return fmt.Errorf("%w: %w", err, errors.Join(r.client.Undeleted...))
	}
	if err != nil || !keepHistory {
		return err
	}
	return r.markUninstalled()
}

func (r *run) markUninstalled() error {
	found, err := r.config.Releases.Last(r.Name)
	if err != nil {
		return err
	}
	last, err := records.Of(found)
	if err != nil {
		return err
	}
	last.Info.Status = common.StatusUninstalled
	return r.config.Releases.Update(last)
}
