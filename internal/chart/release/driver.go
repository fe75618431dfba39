package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	helmrelease "helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

// Driver is Helm's storage of one release for one attempt. It seals each revision that Helm writes, and shows Helm
// only the revisions that the ledger knows, in the states of the ledger, so that upgrades, rollbacks and
// uninstallations start from these.
type Driver struct {
	*Records

	// Attempt is the id of the attempt.
	Attempt string
	// Report adds a revision to the ledger before its record is written.
	Report func(ctx context.Context, r order.Revision) error
	// Manifest changes the manifests that Helm reads; nil leaves them as they are.
	Manifest func(manifest string) (string, error)

	helm *driver.Secrets
	mu   sync.Mutex // of Known
	// uninstalling is true during an uninstallation.
	uninstalling atomic.Bool
}

// NewDriver returns the storage with the records.
func NewDriver(r *Records) *Driver {
	return &Driver{Records: r, helm: driver.NewSecrets(r.secrets)}
}

// Name implements driver.Driver.
func (d *Driver) Name() string { return driver.SecretsDriverName }

// Create implements driver.Driver.
func (d *Driver) Create(key string, r helmrelease.Releaser) error {
	record, err := Of(r)
	if err != nil {
		return err
	}
	known := order.Revision{Version: record.Version, Attempt: d.Attempt}
	if known.Names, err = NamesOf(record); err != nil {
		return err
	}
	if err := Seal(record, d.Seal, d.Attempt); err != nil { // It also checks that the record can be read again.
		return err
	}
	if err := d.Report(context.Background(), known); err != nil { // Helm's storage has no context.
		return fmt.Errorf("tell the ledger of revision %d: %w", record.Version, err)
	}
	known.Status = record.Info.Status.String()
	d.note(func(all []order.Revision) []order.Revision {
		return append(slices.DeleteFunc(all, func(old order.Revision) bool { return old.Version >= known.Version }), known)
	})
	return d.helm.Create(key, record)
}

// Update implements driver.Driver. During an uninstallation it does not store the state uninstalled:
// Helm writes it also where a hook or a wait has failed.
func (d *Driver) Update(key string, r helmrelease.Releaser) error {
	record, err := Of(r)
	if err != nil {
		return err
	}
	known := knownAs(d.revisions(), record.Version)
	if known == nil {
		return driver.ErrReleaseNotFound
	}
	if d.uninstalling.Load() && record.Info.Status == common.StatusUninstalled {
		record.Info.Status = common.StatusUninstalling
	}
	if err := Seal(record, d.Seal, known.Attempt); err != nil {
		return err
	}
	if err := orGone(d.helm.Update(key, record)); err != nil {
		return err
	}
	d.note(func(all []order.Revision) []order.Revision {
		if known := knownAs(all, record.Version); known != nil {
			known.Status = record.Info.Status.String()
		}
		return all
	})
	return nil
}

// revisions returns the ledger's present revisions. After an attempt, Helm writes its end from another
// goroutine.
func (d *Driver) revisions() []order.Revision {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Known
}

// note changes the revisions in the ledger.
func (d *Driver) note(change func([]order.Revision) []order.Revision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Known = change(slices.Clone(d.Known))
}

// Uninstalling says that an uninstallation begins, or that it is over.
func (d *Driver) Uninstalling(begins bool) { d.uninstalling.Store(begins) }

// Of converts a release of Helm's interfaces to the form that this package knows.
func Of(r helmrelease.Releaser) (*Release, error) {
	record, ok := r.(*Release)
	if !ok || record == nil {
		return nil, fmt.Errorf("a release has a form that is not known: %T", r)
	}
	return record, nil
}

// Get implements driver.Driver.
func (d *Driver) Get(name string) (helmrelease.Releaser, error) {
	found, err := d.find(func(r order.Revision) bool { return key(d.Records.Name, r.Version) == name })
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// List implements driver.Driver.
func (d *Driver) List(filter func(helmrelease.Releaser) bool) ([]helmrelease.Releaser, error) {
	found, err := d.find(func(order.Revision) bool { return true })
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}
	return slices.DeleteFunc(found, func(r helmrelease.Releaser) bool { return !filter(r) }), err
}

// Query implements driver.Driver.
func (d *Driver) Query(labels map[string]string) ([]helmrelease.Releaser, error) {
	return d.find(func(r order.Revision) bool {
		status, given := labels["status"]
		return !given || status == r.Status
	})
}

// find returns the revisions of the ledger that are wanted, or driver.ErrReleaseNotFound.
func (d *Driver) find(wanted func(order.Revision) bool) ([]helmrelease.Releaser, error) {
	ctx := context.Background() // Helm's storage has none.
	var found []helmrelease.Releaser
	for _, known := range slices.Backward(d.revisions()) {
		if !wanted(known) {
			continue
		}
		record, err := d.open(ctx, known)
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
	record, err := Of(found)
	if err != nil {
		return nil, err
	}
	d.note(func(all []order.Revision) []order.Revision {
		return slices.DeleteFunc(all, func(r order.Revision) bool { return r.Version == record.Version })
	})
	return found, orGone(d.secrets.Delete(context.Background(), key, metav1.DeleteOptions{}))
}

// orGone makes the error of a Secret that is gone driver.ErrReleaseNotFound.
func orGone(err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", driver.ErrReleaseNotFound, err)
	}
	return err
}

// TakeOver deletes the records that do not count. If no record is left from which Helm can start,
// TakeOver makes a new one. stub makes its manifest of the deleted ones, without hooks and values.
// Helm can start the action from its state, but cannot roll back to it.
func (d *Driver) TakeOver(ctx context.Context, action order.Action, stub func(manifests []string) (string, error)) error {
	all, err := d.Records.List(ctx)
	if err != nil {
		return err
	}
	h, err := d.Read(ctx, all)
	if err != nil {
		return err
	}
	hasBase := h.Deployed != nil || h.Last != nil && order.Deployed(d.Known) == nil
	if !hasBase && len(d.Known)+len(h.Revisions) > 0 {
		if err := d.createStub(ctx, action, h.Revisions, stub); err != nil {
			return fmt.Errorf("take over release %q: %w", d.Records.Name, err)
		}
	}
	return d.delete(ctx, h.Revisions, func(r Revision) bool { return !r.Counts })
}

// createStub makes the successor of the revisions, the newest first.
func (d *Driver) createStub(ctx context.Context, action order.Action, revisions []Revision, stub func([]string) (string, error)) error {
	var manifests []string
	first, version, status := time.Now(), 0, common.StatusSuperseded
	var err error
	if len(d.Known) == 0 {
		if manifests, first, err = d.madeBy(ctx, revisions); err != nil {
			return err
		}
	} else {
		version = d.Known[len(d.Known)-1].Version
	}
	if len(revisions) > 0 {
		version = max(version, revisions[0].Version)
	}
	if action == order.Install {
		status = common.StatusFailed // Helm installs over failed ones alone.
	}
	manifest, err := stub(manifests)
	if err != nil {
		return err
	}
	return d.Create(key(d.Records.Name, version+1), &Release{
		Name: d.Records.Name, Namespace: d.Namespace, Version: version + 1, Manifest: manifest, ApplyMethod: string(helm.ApplyMethodServerSideApply),
		Info:  &helm.Info{FirstDeployed: first, LastDeployed: metav1.Now().Time, Status: status, Description: "Taken over"},
		Chart: &chart.Chart{Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "taken-over", Version: "0.0.0"}},
	})
}

// madeBy returns the manifests of the objects that the revisions may have made: of the newest revision
// and those before it, down to the newest that was deployed. An attempt that failed or was killed has not deleted the objects that it
// drops. first is when the release was first deployed.
func (d *Driver) madeBy(ctx context.Context, revisions []Revision) (manifests []string, first time.Time, err error) {
	first = time.Now()
	size := 0
	for i, revision := range revisions {
		before, err := d.read(ctx, revision.Version)
		switch {
		case errors.Is(err, errUnreadable) || apierrors.IsNotFound(err):
		case err != nil:
			return nil, first, err
		default:
			manifests, first = append(manifests, before.Manifest), before.Info.FirstDeployed
			size += len(before.Manifest)
		}
		if wasDeployed(revision.Status) || i == maxOpened || size > maxRecord {
			break
		}
	}
	return manifests, first, nil
}
