package release

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/seal"
)

func typesUID(uid string) types.UID { return types.UID(uid) }

// secretsOf lists the metadata of Secrets.
type secretsOf struct {
	metadata.ResourceInterface

	secrets clientv1.SecretInterface
}

// List implements metadata.ResourceInterface.
func (s secretsOf) List(ctx context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	all, err := s.secrets.List(ctx, o)
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	for _, secret := range all.Items {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: secret.ObjectMeta})
	}
	return list, nil
}

var testKeys = seal.Keys{{Number: 1, Secret: []byte(strings.Repeat("k", 32))}}

// newDriver returns the storage of release a of the CR with the UID, on Secrets that others
// share, with what the ledger knows, for an attempt.
func newDriver(inCluster clientv1.SecretInterface, kind, uid string, known ...order.Revision) *Driver {
	owner := order.Owner{Group: "g", Kind: kind, Namespace: "ns", Name: "a", UID: uid}
	d := NewDriver(&Records{
		Name: "a", Namespace: "ns", Seal: order.Seal{Owner: owner, Keys: KeysFor(testKeys, owner)}, Known: known,
		secrets: &secrets{SecretInterface: inCluster}, meta: secretsOf{secrets: inCluster},
	})
	d.Attempt, d.Report = attempt, func(context.Context, order.Revision) error { return nil }
	return d
}

// attempt is the id of the attempt of newDriver.
const attempt = "a1"

// revisions returns what the ledger knows after the attempt has made these, the first first.
func revisions(statuses ...common.Status) (all []order.Revision) {
	for i, status := range statuses {
		all = append(all, order.Revision{Version: i + 1, Attempt: attempt, Status: status.String()})
	}
	return all
}

func record(version int, status common.Status) *Release {
	return &Release{
		Name: "a", Namespace: "ns", Version: version, Manifest: "kind: ConfigMap\n", Labels: map[string]string{order.DigestLabel: "d1"},
		Config: map[string]any{"n": int64(9007199254740993), "f": 1.5, "none": nil, "list": []any{"x"}},
		Hooks:  []*helm.Hook{{Name: "h", Manifest: "kind: Job\n", Events: []helm.HookEvent{helm.HookPreDelete}}},
		Info:   &helm.Info{Status: status}, Chart: &chart.Chart{Metadata: &chart.Metadata{Name: "c", Version: "1.0.0", APIVersion: "v2"}, Values: map[string]any{"a": int64(1)}},
	}
}

// shape returns the records as "2 deployed counts, 1 superseded".
func shape(h History) string {
	var all []string
	for _, r := range h.Revisions {
		text := strconv.Itoa(r.Version) + " " + r.Status
		if r.Counts {
			text += " counts"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func read(t *testing.T, d *Driver) History {
	t.Helper()
	all, err := d.Records.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h, err := d.Read(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHelmsOwnStorageKeepsWhatIsSealed(t *testing.T) {
	secrets := fake.NewClientset().CoreV1().Secrets("ns")
	store := storage.Init(newDriver(secrets, "K", "u1"))
	if _, err := store.Last("a"); !errors.Is(err, driver.ErrReleaseNotFound) {
		t.Errorf("of a release that is not there: %v", err)
	}
	first := record(1, common.StatusDeployed)
	for _, r := range []*Release{first, record(2, common.StatusPendingUpgrade)} {
		if err := store.Create(r); err != nil {
			t.Fatal(err)
		}
	}
	first.Info.Status, first.Hooks[0].LastRun.Phase = common.StatusSuperseded, helm.HookPhaseSucceeded
	if err := store.Update(first); err != nil {
		t.Fatal(err)
	}
	known := revisions(common.StatusSuperseded, common.StatusPendingUpgrade)
	h := read(t, newDriver(secrets, "K", "u1", known...))
	if got := shape(h); got != "2 pending-upgrade counts, 1 superseded counts" || h.Last.Version != 2 || h.Deployed.Version != 1 {
		t.Errorf("got %s", got)
	}
	for why, d := range map[string]*Driver{
		"a successor of the CR":      newDriver(secrets, "K", "u2", known...),
		"another kind":               newDriver(secrets, "L", "u1", known...),
		"an entry of other attempts": newDriver(secrets, "K", "u1", order.Revision{Version: 1, Attempt: "a0", Status: "superseded"}, order.Revision{Version: 2, Attempt: "a0", Status: "deployed"}),
		"no entry":                   newDriver(secrets, "K", "u1"),
	} {
		if got := shape(read(t, d)); got != "2 pending-upgrade, 1 superseded" {
			t.Errorf("%s sees %s", why, got)
		}
		if found, err := d.Query(nil); len(found) > 0 || !errors.Is(err, driver.ErrReleaseNotFound) {
			t.Errorf("%s: Helm finds %d, %v", why, len(found), err)
		}
	}
	if _, err := store.Delete("a", 1); err != nil {
		t.Error(err)
	}
	if got := shape(read(t, newDriver(secrets, "K", "u1", known...))); got != "2 pending-upgrade counts" {
		t.Errorf("got %s", got)
	}
}

// A record's state is the ledger's once an attempt has ended; before that only a sealed one counts.
func TestWhichStateCounts(t *testing.T) {
	for why, test := range map[string]struct {
		known string // to the ledger
		write func(t *testing.T, s clientv1.SecretInterface, r *Release)
		want  string
	}{
		"the sealed one":                       {"", func(*testing.T, clientv1.SecretInterface, *Release) {}, "1 deployed notes"},
		"another's word, without an end":       {"", restate(common.StatusUninstalling), ""},
		"another's word, after the end":        {"deployed", restate(common.StatusSuperseded), "deployed notes"},
		"one that the ledger has in its stead": {"failed", func(*testing.T, clientv1.SecretInterface, *Release) {}, "failed notes"},
		"another's notes": {"deployed", func(t *testing.T, s clientv1.SecretInterface, r *Release) {
			t.Helper()
			r.Info.Notes = "evil"
			overwrite(t, s, r)
		}, "deployed "},
	} {
		t.Run(why, func(t *testing.T) {
			secrets := fake.NewClientset().CoreV1().Secrets("ns")
			r := record(1, common.StatusDeployed)
			r.Info.Notes = "notes"
			if err := newDriver(secrets, "K", "u1").Create("sh.helm.release.v1.a.v1", r); err != nil {
				t.Fatal(err)
			}
			test.write(t, secrets, r)
			d := newDriver(secrets, "K", "u1", order.Revision{Version: 1, Attempt: attempt, Status: test.known})
			if test.known == "" {
				states, err := d.Sealed(t.Context(), attempt)
				got := ""
				for version, state := range states {
					got = fmt.Sprint(version, " ", state, " notes")
				}
				if err != nil || got != test.want {
					t.Errorf("got %q, %v", got, err)
				}
				return
			}
			h := read(t, d)
			if got := h.Last.Info.Status.String() + " " + h.Last.Info.Notes; got != test.want {
				t.Errorf("got %s", got)
			}
			if d.Misstated(h.Revisions) != (h.Revisions[0].Status != test.known) {
				t.Errorf("Misstated is wrong about %s", shape(h))
			}
			if err := d.Restate(t.Context(), h.Revisions); err != nil {
				t.Fatal(err)
			}
			if got := shape(read(t, d)); got != "1 "+test.known+" counts" {
				t.Errorf("after Restate: %s", got)
			}
		})
	}
}

func restate(status common.Status) func(*testing.T, clientv1.SecretInterface, *Release) {
	return func(t *testing.T, s clientv1.SecretInterface, r *Release) {
		t.Helper()
		r.Info.Status = status
		overwrite(t, s, r)
	}
}

// overwrite writes a record by Helm's own driver, labels and all.
func overwrite(t *testing.T, secrets clientv1.SecretInterface, r *Release) {
	t.Helper()
	plain := driver.NewSecrets(secrets)
	err := plain.Create(key("a", r.Version), r)
	if errors.Is(err, driver.ErrReleaseExists) {
		err = plain.Update(key("a", r.Version), r)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Each forgery is what somebody can do who may write Secrets in the namespace.
func TestNothingOfAForgedRecordIsUsed(t *testing.T) {
	genuine := func(t *testing.T, secrets clientv1.SecretInterface) (*corev1.Secret, *Release) {
		t.Helper()
		if err := storage.Init(newDriver(secrets, "K", "u1")).Create(record(1, common.StatusDeployed)); err != nil {
			t.Fatal(err)
		}
		secret, err := secrets.Get(t.Context(), "sh.helm.release.v1.a.v1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := decode(secret.Data["release"])
		if err != nil {
			t.Fatal(err)
		}
		r.Labels = secret.Labels
		return secret, r
	}
	for why, test := range map[string]struct {
		forge func(t *testing.T, secrets clientv1.SecretInterface, r *Release, secret *corev1.Secret)
		want  string
	}{
		"another manifest": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Manifest = "kind: ClusterRoleBinding\n"
			overwrite(t, s, r)
		}, "1 deployed"},
		"another hook": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Hooks[0].Manifest = "kind: Pod\n"
			overwrite(t, s, r)
		}, "1 deployed"},
		"one more hook": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Hooks = append(r.Hooks, &helm.Hook{Name: "x", Manifest: "kind: Pod\n", Events: []helm.HookEvent{helm.HookPreDelete}})
			overwrite(t, s, r)
		}, "1 deployed"},
		"a hook of another event": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Hooks[0].Events = []helm.HookEvent{helm.HookPostDelete}
			overwrite(t, s, r)
		}, "1 deployed"},
		"another chart": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Chart.Metadata.Name = "other"
			overwrite(t, s, r)
		}, "1 deployed"},
		"other values": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Config["f"] = 2.5
			overwrite(t, s, r)
		}, "1 deployed"},
		"another digest, so that it is out of sync": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Labels[order.DigestLabel] = "d2"
			overwrite(t, s, r)
		}, "1 deployed"},
		"another UID, which only says whose it is": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Labels[order.OwnerLabel] = "u2"
			overwrite(t, s, r)
		}, "1 deployed counts"},
		"the labels of the genuine one on a later revision": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Version, r.Manifest = 2, "kind: ClusterRoleBinding\n"
			overwrite(t, s, r)
		}, "2 deployed, 1 deployed counts"},
		"the genuine one as a later revision": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Version = 2
			overwrite(t, s, r)
		}, "2 deployed, 1 deployed counts"},
		"the genuine data under a later name": {func(t *testing.T, s clientv1.SecretInterface, _ *Release, secret *corev1.Secret) {
			secret.Name, secret.ResourceVersion, secret.Labels["version"] = "sh.helm.release.v1.a.v2", "", "2"
			if _, err := s.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}, "2 deployed, 1 deployed counts"},
		"a record that unpacks to much": {func(t *testing.T, s clientv1.SecretInterface, _ *Release, secret *corev1.Secret) {
			secret.Data["release"] = bomb(t)
			if _, err := s.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}, "1 deployed"},
		"no chart": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Chart = nil
			overwrite(t, s, r)
		}, "1 deployed"},
		"no state": {func(t *testing.T, s clientv1.SecretInterface, _ *Release, secret *corev1.Secret) {
			secret.Data["release"] = []byte(base64.StdEncoding.EncodeToString([]byte(`{"name":"a","namespace":"ns","version":1}`)))
			if _, err := s.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}, "1 deployed"},
		"what is no record": {func(t *testing.T, s clientv1.SecretInterface, _ *Release, secret *corev1.Secret) {
			secret.Data = nil
			if _, err := s.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}, "1 deployed"},
		"another state, which Helm's command writes too": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Info.Status = common.StatusSuperseded
			overwrite(t, s, r)
		}, "1 superseded counts"},
	} {
		t.Run(why, func(t *testing.T) {
			secrets := fake.NewClientset().CoreV1().Secrets("ns")
			secret, r := genuine(t, secrets)
			test.forge(t, secrets, r, secret)
			d := newDriver(secrets, "K", "u1", revisions(common.StatusDeployed)...)
			if got := shape(read(t, d)); got != test.want {
				t.Errorf("got %s", got)
			}
			found, err := d.Query(map[string]string{"name": "a", "owner": "helm"})
			if want := strings.Count(test.want, "counts"); len(found) != want || want == 0 && !errors.Is(err, driver.ErrReleaseNotFound) {
				t.Errorf("Helm finds %d revisions, %v", len(found), err)
			}
			stubs := ""
			if err := d.TakeOver(t.Context(), order.Upgrade, func(manifests []string) (string, error) { stubs += strings.Join(manifests, ""); return "stub: of", nil }); err != nil {
				t.Fatal(err)
			}
			h := read(t, d)
			if h.Last == nil || strings.Contains(shape(h), "deployed,") || len(h.Last.Hooks) > 0 && h.Last.Version == 2 {
				t.Errorf("after it was taken over: %s", shape(h))
			}
		})
	}
}

// bomb returns a record of a few KB that stands for 64 MB.
func bomb(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(`{"name":"`)); err != nil {
		t.Fatal(err)
	}
	for range 64 {
		if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))
}

func TestWhatIsTakenOver(t *testing.T) {
	for why, test := range map[string]struct {
		revisions []common.Status
		want      string // the manifests from which a successor is made
	}{
		"the last is deployed":                        {[]common.Status{common.StatusSuperseded, common.StatusDeployed}, "2"},
		"a failed one, and the one before it":         {[]common.Status{common.StatusSuperseded, common.StatusDeployed, common.StatusFailed}, "3, 2"},
		"all since the last that was deployed":        {[]common.Status{common.StatusSuperseded, common.StatusFailed, common.StatusPendingUpgrade}, "3, 2, 1"},
		"an installation that has never been through": {[]common.Status{common.StatusFailed, common.StatusPendingInstall}, "2, 1"},
	} {
		t.Run(why, func(t *testing.T) {
			secrets := fake.NewClientset().CoreV1().Secrets("ns")
			plain := storage.Init(driver.NewSecrets(secrets))
			for i, status := range test.revisions {
				revision := record(i+1, status)
				revision.Manifest = strconv.Itoa(i + 1)
				if err := plain.Create(revision); err != nil {
					t.Fatal(err)
				}
			}
			d := newDriver(secrets, "K", "u1")
			if err := d.TakeOver(t.Context(), order.Upgrade, func(manifests []string) (string, error) { return "stub: of " + strings.Join(manifests, ", "), nil }); err != nil {
				t.Fatal(err)
			}
			h := read(t, d)
			if got, want := shape(h), fmt.Sprintf("%d superseded counts", len(test.revisions)+1); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
			if diff := cmp.Diff("stub: of "+test.want, h.Last.Manifest); diff != "" || len(h.Last.Hooks) > 0 || h.Last.Config != nil || h.Last.Labels[order.DigestLabel] != "" {
				t.Errorf("got %+v", h.Last)
			}
			if err := d.Purge(t.Context()); err != nil || len(read(t, d).Revisions) > 0 {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAnUninstallationIsOverWhenItIsSaidToBe(t *testing.T) {
	d := newDriver(fake.NewClientset().CoreV1().Secrets("ns"), "K", "u1")
	store := storage.Init(d)
	r := record(1, common.StatusDeployed)
	if err := store.Create(r); err != nil {
		t.Fatal(err)
	}
	for begins, want := range map[bool]string{true: "1 uninstalling counts", false: "1 uninstalled counts"} {
		d.Uninstalling(begins)
		r.Info.Status = common.StatusUninstalled
		if err := store.Update(r); err != nil {
			t.Fatal(err)
		}
		if got := shape(read(t, d)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A crowd of owners, which somebody adds, does not hide a record from the deletion of its release.
func TestARecordWithACrowdOfOwnersGoes(t *testing.T) {
	secrets := fake.NewClientset().CoreV1().Secrets("ns")
	if err := storage.Init(newDriver(secrets, "K", "u1")).Create(record(1, common.StatusDeployed)); err != nil {
		t.Fatal(err)
	}
	all, err := secrets.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	one := &all.Items[0]
	for i := range maxReferences + 1 {
		one.OwnerReferences = append(one.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: types.UID(strconv.Itoa(i))})
	}
	if _, err := secrets.Update(t.Context(), one, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := newDriver(secrets, "K", "u1", revisions(common.StatusDeployed)...).Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all, err = secrets.List(t.Context(), metav1.ListOptions{}); err != nil || len(all.Items) > 0 {
		t.Errorf("%d Secrets are left, %v", len(all.Items), err)
	}
}
