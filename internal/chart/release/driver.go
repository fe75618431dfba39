package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	helmrelease "helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Driver is a storage of Helm for one release. It seals each revision that Helm writes. Helm
// finds no other revision there than sealed ones, so that an upgrade, a rollback and an
// uninstallation start from these alone.
type Driver struct {
	*Records

	// Manifest changes the manifests that Helm reads; nil leaves them as they are.
	Manifest func(manifest string) (string, error)

	helm *driver.Secrets
	// listed are the revisions as they were listed since the last write; nil: they are listed anew. A CR has one run
	// at a time, so nobody else writes what Helm is shown.
	listed []Revision
	// uninstalling is true while an uninstallation is at work.
	uninstalling atomic.Bool
}

// NewDriver returns the storage of the release that the records are of.
func NewDriver(r *Records) *Driver {
	return &Driver{Records: r, helm: driver.NewSecrets(recordSecrets{r.secrets, annotationsOf(r.Seal.Owner)})}
}

// Name implements driver.Driver.
func (d *Driver) Name() string { return driver.SecretsDriverName }

// Create implements driver.Driver.
func (d *Driver) Create(key string, r helmrelease.Releaser) error {
	return d.write(r, func(sealed *Release) error { return d.helm.Create(key, sealed) })
}

// Update implements driver.Driver. While an uninstallation is running, Helm's record that it is
// done is not stored: Helm writes it also where a hook or a wait has failed.
func (d *Driver) Update(key string, r helmrelease.Releaser) error {
	return d.write(r, func(sealed *Release) error {
		if d.uninstalling.Load() && sealed.Info.Status == common.StatusUninstalled {
			sealed.Info.Status = common.StatusUninstalling
		}
		return orGone(d.helm.Update(key, sealed))
	})
}

// Uninstalling says that an uninstallation begins, or that it is over.
func (d *Driver) Uninstalling(begins bool) { d.uninstalling.Store(begins) }

func (d *Driver) write(r helmrelease.Releaser, send func(*Release) error) error {
	record, err := Of(r)
	if err == nil {
		err = Seal(record, d.Seal)
	}
	if err != nil {
		return err
	}
	d.listed = nil
	return send(record)
}

// Of returns a release of Helm's interfaces in the form that this package knows.
func Of(r helmrelease.Releaser) (*Release, error) {
	record, ok := r.(*Release)
	if !ok || record == nil {
		return nil, fmt.Errorf("a release has a form that is not known: %T", r)
	}
	return record, nil
}

// Get implements driver.Driver.
func (d *Driver) Get(name string) (helmrelease.Releaser, error) {
	found, err := d.sealed(func(r Revision) bool { return key(d.Records.Name, r.Version) == name })
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// List implements driver.Driver.
func (d *Driver) List(filter func(helmrelease.Releaser) bool) ([]helmrelease.Releaser, error) {
	found, err := d.sealed(func(Revision) bool { return true })
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}
	return slices.DeleteFunc(found, func(r helmrelease.Releaser) bool { return !filter(r) }), err
}

// Query implements driver.Driver.
func (d *Driver) Query(labels map[string]string) ([]helmrelease.Releaser, error) {
	return d.sealed(func(r Revision) bool {
		status, given := labels["status"]
		return !given || status == r.Status
	})
}

// sealed returns the sealed revisions that are wanted, or driver.ErrReleaseNotFound.
func (d *Driver) sealed(wanted func(Revision) bool) ([]helmrelease.Releaser, error) {
	ctx := context.Background() // Helm's storage has none.
	if d.listed == nil {
		all, err := d.list(ctx)
		if err != nil {
			return nil, err
		}
		d.listed = append(make([]Revision, 0, len(all)), all...)
	}
	var found []helmrelease.Releaser
	for i := range d.listed {
		if !d.listed[i].claimsSeal || !wanted(d.listed[i]) {
			continue
		}
		record, err := d.open(ctx, &d.listed[i])
		if err != nil {
			return nil, err
		}
		if record == nil {
			continue
		}
		if d.Manifest != nil {
			if record.Manifest, err = d.Manifest(record.Manifest); err != nil {
				return nil, fmt.Errorf("revision %d of release %q: %w", record.Version, d.Records.Name, err)
			}
		}
		found = append(found, record)
	}
	if found == nil {
		return nil, driver.ErrReleaseNotFound
	}
	return found, nil
}

// Delete implements driver.Driver.
func (d *Driver) Delete(key string) (helmrelease.Releaser, error) {
	found, err := d.Get(key)
	if err != nil {
		return nil, err
	}
	d.listed = nil
	return found, orGone(d.secrets.Delete(context.Background(), key, metav1.DeleteOptions{}))
}

// orGone makes the error of a Secret that is gone driver.ErrReleaseNotFound.
func orGone(err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", driver.ErrReleaseNotFound, err)
	}
	return err
}

// TakeOver replaces the revisions that are not sealed. If there is no other one, the newest of
// them gets a successor, whose manifest is what stub makes of theirs, without hooks and
// values. It is marked as superseded: an upgrade starts from it, and nothing rolls back to it.
func (d *Driver) TakeOver(ctx context.Context, stub func(manifests []string) (string, error)) error {
	h, err := d.Read(ctx)
	if err != nil || len(h.Revisions) == 0 {
		return err
	}
	if h.Last == nil {
		if err := d.createStub(ctx, h.Revisions, stub); err != nil {
			return fmt.Errorf("take over release %q: %w", d.Records.Name, err)
		}
	}
	d.listed = nil
	return d.delete(ctx, h.Revisions, func(r Revision) bool { return !r.Sealed })
}

// createStub makes the successor of the revisions, the newest of which is the first.
func (d *Driver) createStub(ctx context.Context, revisions []Revision, stub func([]string) (string, error)) error {
	manifests, first, err := d.madeBy(ctx, revisions)
	if err != nil {
		return err
	}
	manifest, err := stub(manifests)
	if err != nil {
		return err
	}
	version := revisions[0].Version + 1
	return d.Create(key(d.Records.Name, version), &Release{
		Name: d.Records.Name, Namespace: d.Namespace, Version: version, Manifest: manifest, ApplyMethod: string(helm.ApplyMethodServerSideApply),
		Info:  &helm.Info{FirstDeployed: first, LastDeployed: metav1.Now().Time, Status: common.StatusSuperseded, Description: "Taken over"},
		Chart: &chart.Chart{Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "taken-over", Version: "0.0.0"}},
	})
}

// madeBy returns the manifests of what the revisions may have made: of the newest, and of those before
// it down to one that was deployed. An attempt that failed or was killed has not deleted what it drops.
// first is when the release was first deployed.
func (d *Driver) madeBy(ctx context.Context, revisions []Revision) (manifests []string, first time.Time, err error) {
	first = time.Now()
	size := 0
	for i, revision := range revisions {
		before, err := d.read(ctx, revision)
		switch {
		case errors.Is(err, errUnreadable) || apierrors.IsNotFound(err):
		case err != nil:
			return nil, first, err
		default:
			manifests, first = append(manifests, before.Manifest), before.Info.FirstDeployed
			size += len(before.Manifest)
		}
		if revision.wasDeployed() || i == maxOpened || size > maxRecord {
			break
		}
	}
	return manifests, first, nil
}
