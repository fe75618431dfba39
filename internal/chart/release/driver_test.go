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
// share.
func newDriver(secrets clientv1.SecretInterface, kind, uid string) *Driver {
	owner := order.Owner{Group: "g", Kind: kind, Namespace: "ns", Name: "a", UID: uid}
	return NewDriver(&Records{
		Name: "a", Namespace: "ns", Seal: order.Seal{Owner: owner, Keys: KeysFor(testKeys, owner)},
		secrets: secrets, meta: secretsOf{secrets: secrets},
	})
}

func record(version int, status common.Status) *Release {
	return &Release{
		Name: "a", Namespace: "ns", Version: version, Manifest: "kind: ConfigMap\n", Labels: map[string]string{order.DigestLabel: "d1"},
		Config: map[string]any{"n": int64(9007199254740993), "f": 1.5, "none": nil, "list": []any{"x"}},
		Hooks:  []*helm.Hook{{Name: "h", Manifest: "kind: Job\n", Events: []helm.HookEvent{helm.HookPreDelete}}},
		Info:   &helm.Info{Status: status}, Chart: &chart.Chart{Metadata: &chart.Metadata{Name: "c", Version: "1.0.0", APIVersion: "v2"}, Values: map[string]any{"a": int64(1)}},
	}
}

// shape returns the revisions as "2 deployed sealed mine, 1 superseded".
func shape(h History) string {
	var all []string
	for _, r := range h.Revisions {
		text := strconv.Itoa(r.Version) + " " + r.Status
		if r.Sealed {
			text += " sealed"
		}
		if r.Sealed && r.Mine {
			text += " mine"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func read(t *testing.T, d *Driver) History {
	t.Helper()
	h, err := d.Read(t.Context())
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
	h := read(t, newDriver(secrets, "K", "u1"))
	if got := shape(h); got != "2 pending-upgrade sealed mine, 1 superseded sealed mine" || h.Last.Version != 2 || h.Deployed.Version != 1 {
		t.Errorf("got %s", got)
	}
	if got := shape(read(t, newDriver(secrets, "K", "u2"))); got != "2 pending-upgrade sealed, 1 superseded sealed" {
		t.Errorf("a successor of the CR sees %s", got)
	}
	if got := shape(read(t, newDriver(secrets, "L", "u1"))); got != "2 pending-upgrade, 1 superseded" {
		t.Errorf("another kind sees %s", got)
	}
	if _, err := store.Delete("a", 1); err != nil {
		t.Error(err)
	}
	if got := shape(read(t, newDriver(secrets, "K", "u1"))); got != "2 pending-upgrade sealed mine" {
		t.Errorf("got %s", got)
	}
}

func TestTheDeployedRevisionIsFoundBehindManyThatFailed(t *testing.T) {
	secrets := fake.NewClientset().CoreV1().Secrets("ns")
	store := storage.Init(newDriver(secrets, "K", "u1"))
	for version := 1; version <= maxOpened+5; version++ {
		status := common.StatusFailed
		if version == 1 {
			status = common.StatusDeployed
		}
		if err := store.Create(record(version, status)); err != nil {
			t.Fatal(err)
		}
	}
	h := read(t, newDriver(secrets, "K", "u1"))
	if h.Last == nil || h.Last.Version != maxOpened+5 || h.Deployed == nil || h.Deployed.Version != 1 {
		t.Errorf("got %+v, %+v", h.Last, h.Deployed)
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
	// store writes a record by Helm's own driver, labels and all.
	store := func(t *testing.T, secrets clientv1.SecretInterface, r *Release) {
		t.Helper()
		key := key("a", r.Version)
		plain := driver.NewSecrets(secrets)
		if err := plain.Create(key, r); errors.Is(err, driver.ErrReleaseExists) {
			err = plain.Update(key, r)
			if err != nil {
				t.Fatal(err)
			}
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for why, test := range map[string]struct {
		forge func(t *testing.T, secrets clientv1.SecretInterface, r *Release, secret *corev1.Secret)
		want  string
	}{
		"another manifest": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Manifest = "kind: ClusterRoleBinding\n"
			store(t, s, r)
		}, "1 deployed"},
		"another hook": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Hooks[0].Manifest = "kind: Pod\n"
			store(t, s, r)
		}, "1 deployed"},
		"one more hook": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Hooks = append(r.Hooks, &helm.Hook{Name: "x", Manifest: "kind: Pod\n", Events: []helm.HookEvent{helm.HookPreDelete}})
			store(t, s, r)
		}, "1 deployed"},
		"a hook of another event": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Hooks[0].Events = []helm.HookEvent{helm.HookPostDelete}
			store(t, s, r)
		}, "1 deployed"},
		"another chart": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Chart.Metadata.Name = "other"
			store(t, s, r)
		}, "1 deployed"},
		"other values": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Config["f"] = 2.5
			store(t, s, r)
		}, "1 deployed"},
		"another digest, so that it is out of sync": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Labels[order.DigestLabel] = "d2"
			store(t, s, r)
		}, "1 deployed"},
		"another UID": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Labels[order.OwnerLabel] = "u2"
			store(t, s, r)
		}, "1 deployed"},
		"the labels of the genuine one on a later revision": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Version, r.Manifest = 2, "kind: ClusterRoleBinding\n"
			store(t, s, r)
		}, "2 deployed, 1 deployed sealed mine"},
		"the genuine one as a later revision": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Version = 2
			store(t, s, r)
		}, "2 deployed, 1 deployed sealed mine"},
		"the genuine data under a later name": {func(t *testing.T, s clientv1.SecretInterface, _ *Release, secret *corev1.Secret) {
			secret.Name, secret.ResourceVersion, secret.Labels["version"] = "sh.helm.release.v1.a.v2", "", "2"
			if _, err := s.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}, "2 deployed, 1 deployed sealed mine"},
		"a record that unpacks to much": {func(t *testing.T, s clientv1.SecretInterface, _ *Release, secret *corev1.Secret) {
			secret.Data["release"] = bomb(t)
			if _, err := s.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}, "1 deployed"},
		"no chart": {func(t *testing.T, s clientv1.SecretInterface, r *Release, _ *corev1.Secret) {
			r.Chart = nil
			store(t, s, r)
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
			store(t, s, r)
		}, "1 superseded sealed mine"},
	} {
		t.Run(why, func(t *testing.T) {
			secrets := fake.NewClientset().CoreV1().Secrets("ns")
			secret, r := genuine(t, secrets)
			test.forge(t, secrets, r, secret)
			d := newDriver(secrets, "K", "u1")
			if got := shape(read(t, d)); got != test.want {
				t.Errorf("got %s", got)
			}
			found, err := d.Query(map[string]string{"name": "a", "owner": "helm"})
			if want := strings.Count(test.want, "sealed"); len(found) != want || want == 0 && !errors.Is(err, driver.ErrReleaseNotFound) {
				t.Errorf("Helm finds %d revisions, %v", len(found), err)
			}
			stubs := ""
			if err := d.TakeOver(t.Context(), func(manifests []string) (string, error) { stubs += strings.Join(manifests, ""); return "stub", nil }); err != nil {
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
			if err := d.TakeOver(t.Context(), func(manifests []string) (string, error) { return "stub of " + strings.Join(manifests, ", "), nil }); err != nil {
				t.Fatal(err)
			}
			h := read(t, d)
			if got, want := shape(h), fmt.Sprintf("%d superseded sealed mine", len(test.revisions)+1); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
			if diff := cmp.Diff("stub of "+test.want, h.Last.Manifest); diff != "" || len(h.Last.Hooks) > 0 || h.Last.Config != nil || h.Last.Labels[order.DigestLabel] != "" {
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
	for begins, want := range map[bool]string{true: "1 uninstalling sealed mine", false: "1 uninstalled sealed mine"} {
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
