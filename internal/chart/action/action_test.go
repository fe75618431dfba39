package action

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	chartcommon "helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	kubefake "helm.sh/helm/v4/pkg/kube/fake"
	"helm.sh/helm/v4/pkg/registry"
	helmrelease "helm.sh/helm/v4/pkg/release"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"

	"github.com/ensign-operator/ensign/internal/chart/action/helmclient"
	"github.com/ensign-operator/ensign/internal/chart/order"
	records "github.com/ensign-operator/ensign/internal/chart/release"
)

// newMemoryRun returns a run whose releases are in memory, and which changes no cluster.
func newMemoryRun(t *testing.T, o order.Order) (*run, *kubefake.FailingKubeClient) {
	t.Helper()
	cluster := &kubefake.FailingKubeClient{PrintingKubeClient: kubefake.PrintingKubeClient{Out: io.Discard, LogOutput: io.Discard}}
	registries, err := registry.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	o.Name, o.Namespace, o.Digest = "r", "ns", "d1"
	config := action.NewConfiguration()
	config.Releases, config.KubeClient, config.Capabilities, config.RegistryClient = storage.Init(driver.NewMemory()), cluster, chartcommon.DefaultCapabilities, registries
	return &run{Order: o, config: config, client: &helmclient.Client{}, driver: &records.Driver{}, chart: &chart.Chart{
		Metadata: &chart.Metadata{Name: "c", Version: "1.0.0+build", APIVersion: chart.APIVersionV2},
		Templates: []*chartcommon.File{
			{Name: "templates/a.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {own: label}}\ndata: {a: {{ .Values.a | default \"b\" }}}\n")},
			{Name: "templates/hook.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-install}}\n")},
		},
	}}, cluster
}

// history returns the statuses of the revisions, as "1:deployed".
func history(t *testing.T, r *run) string {
	t.Helper()
	found, err := r.config.Releases.History(r.Name)
	if err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		t.Fatal(err)
	}
	all := make([]string, len(found))
	for _, one := range found {
		revision := one.(*release.Release)
		all[revision.Version-found[0].(*release.Release).Version] = strconv.Itoa(revision.Version) + ":" + revision.Info.Status.String()
	}
	return strings.Join(all, " ")
}

// last returns the last revision.
func last(t *testing.T, r *run) *release.Release {
	t.Helper()
	found, err := r.config.Releases.Last(r.Name)
	if err != nil {
		t.Fatal(err)
	}
	return found.(*release.Release)
}

func TestARevisionHasItsDigestAndItsChartsText(t *testing.T) {
	r, _ := newMemoryRun(t, order.Order{Settings: order.Settings{Description: "why"}})
	if err := r.install(t.Context()); err != nil {
		t.Fatal(err)
	}
	made := last(t, r)
	if made.Labels[order.DigestLabel] != "d1" || made.Info.Description != "why" || history(t, r) != "1:deployed" {
		t.Errorf("got %v, %q, %s", made.Labels, made.Info.Description, history(t, r))
	}
	// Chart and Helm alone write the text: the API proxy labels the objects.
	if want := "---\n# Source: c/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {own: label}}\ndata: {a: b}"; strings.TrimSpace(made.Manifest) != want {
		t.Errorf("got the manifest:\n%s", made.Manifest)
	}
	if len(made.Hooks) != 1 {
		t.Errorf("got the hooks %+v", made.Hooks)
	}
}

func TestAnUpgradeKeepsSoManyRevisions(t *testing.T) {
	r, _ := newMemoryRun(t, order.Order{Settings: order.Settings{MaxHistory: 2}})
	if err := r.install(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := r.upgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := history(t, r); got != "3:superseded 4:deployed" {
		t.Errorf("got %s", got)
	}
}

func TestAnUpgradeThatFailsGoesBack(t *testing.T) {
	r, cluster := newMemoryRun(t, order.Order{})
	if err := r.install(t.Context()); err != nil {
		t.Fatal(err)
	}
	cluster.UpdateError = errors.New("no room")
	err := r.upgrade(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no room") || !strings.Contains(err.Error(), "and the rollback failed") {
		t.Errorf("got %v", err)
	}
	if got := history(t, r); got != "1:deployed 2:superseded 3:failed" { // Helm's word for what a rollback leaves.
		t.Errorf("got %s", got)
	}
}

func TestAnUninstallationKeepsTheHistory(t *testing.T) {
	for keep, want := range map[bool]string{true: "1:uninstalled", false: ""} {
		r, _ := newMemoryRun(t, order.Order{})
		if err := r.uninstall(keep); err != nil {
			t.Errorf("a release that is not there: %v", err)
		}
		if err := r.install(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.uninstall(keep); err != nil || history(t, r) != want {
			t.Errorf("keep %v: got %v, %s", keep, err, history(t, r))
		}
	}
}

func TestAnUninstallationGoesOnWithoutARecordThatGoes(t *testing.T) {
	r, _ := newMemoryRun(t, order.Order{})
	if err := r.install(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.config.Releases = storage.Init(forgetful{r.config.Releases.Driver})
	if err := r.uninstall(true); err != nil || history(t, r) != "" {
		t.Errorf("got %v, %s", err, history(t, r))
	}
}

// forgetful is a storage whose namespace is being deleted: a record is gone before it is changed.
type forgetful struct{ driver.Driver }

// Update implements driver.Driver.
func (f forgetful) Update(key string, _ helmrelease.Releaser) error {
	if _, err := f.Delete(key); err != nil {
		return err
	}
	return driver.ErrReleaseNotFound
}

// Helm takes any error of its storage for a release that is not there.
func TestAnUninstallationWithoutItsRecordFails(t *testing.T) {
	r, _ := newMemoryRun(t, order.Order{})
	r.config.Releases = storage.Init(unreadable{driver.NewMemory()})
	if err := r.uninstall(true); err == nil {
		t.Error("it succeeded")
	}
}

// unreadable is a storage that cannot be read.
type unreadable struct{ *driver.Memory }

// Query implements driver.Driver.
func (unreadable) Query(map[string]string) ([]helmrelease.Releaser, error) {
	return nil, errors.New("the server is busy")
}
