package release

import (
	"math/rand/v2"
	"strings"
	"testing"

	chartcommon "helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/release/common"
	"helm.sh/helm/v4/pkg/storage"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestARecordThatIsTooLargeIsRefusedWithItsSizeAndARemedy(t *testing.T) {
	random := make([]byte, 1<<20)
	for i := range random {
		random[i] = byte(rand.Uint32()) // It only has to be hard to pack.
	}
	for why, test := range map[string]struct {
		file []byte
		want string // "" if it is written
	}{
		"it is small":          {random[:1<<10], ""},
		"a Secret has no room": {random, "MiB, and a Secret holds 1 MiB. "},
		"it could not be read": {make([]byte, maxRecord), "MiB, unpacked, and 32 MiB are read. "},
	} {
		secrets := fake.NewClientset().CoreV1().Secrets("ns")
		r := record(1, common.StatusPendingInstall)
		r.Chart.Files = []*chartcommon.File{{Name: "a", Data: test.file}}
		err := storage.Init(newDriver(secrets, "K", "u1")).Create(r)
		if test.want == "" {
			if err != nil {
				t.Errorf("%s: got %v", why, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), ".helmignore") {
			t.Errorf("%s: got %v", why, err)
		}
		if h := read(t, newDriver(secrets, "K", "u1")); len(h.Revisions) > 0 {
			t.Errorf("%s: there is %s", why, shape(h))
		}
	}
}

func TestARecordHasRoomForItsNextStates(t *testing.T) {
	secrets := fittingSecrets{fake.NewClientset().CoreV1().Secrets("ns")}
	for size, fits := range map[int]bool{corev1.MaxSecretSize - growth: true, corev1.MaxSecretSize - growth + 1: false} {
		_, err := secrets.Create(t.Context(), &corev1.Secret{Data: map[string][]byte{"release": make([]byte, size)}}, metav1.CreateOptions{})
		if (err == nil) != fits {
			t.Errorf("%d bytes: got %v", size, err)
		}
	}
}
