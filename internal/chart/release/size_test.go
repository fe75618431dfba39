package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"math/rand/v2"
	"runtime"
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
	secrets := &secrets{SecretInterface: fake.NewClientset().CoreV1().Secrets("ns")}
	for size, fits := range map[int]bool{corev1.MaxSecretSize - growth: true, corev1.MaxSecretSize - growth + 1: false} {
		_, err := secrets.Create(t.Context(), &corev1.Secret{Data: map[string][]byte{"release": make([]byte, size)}}, metav1.CreateOptions{})
		if (err == nil) != fits {
			t.Errorf("%d bytes: got %v", size, err)
		}
	}
}

// Each text unpacks to almost as much as is read at all. Decoded, it would take gigabytes.
func TestARecordOfManyValuesIsNotDecoded(t *testing.T) {
	for place, form := range map[string]string{
		"config": `{"config":{"a":[X]}}`, "chart.values": `{"chart":{"metadata":{},"values":{"a":[X]}}}`, "info": `{"info":{"resources":{"a":[X]}}}`, "hooks": `{"hooks":[X]}`,
	} {
		before, after, _ := strings.Cut(form, "X")
		const one = `{"":0},`
		text := before + strings.Repeat(one, (maxRecord-100)/len(one)) + "0" + after
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err := w.Write([]byte(text))
		if err != nil || w.Close() != nil || packed.Len() > 100<<10 {
			t.Fatalf("%s: %d bytes, %v", place, packed.Len(), err)
		}
		data := []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		_, err = decode(data)
		runtime.ReadMemStats(&end)
		if err == nil || !strings.Contains(err.Error(), "JSON values") {
			t.Errorf("%s: got %v", place, err)
		}
		if took := end.TotalAlloc - start.TotalAlloc; took > 8*maxRecord { // What unpacking takes.
			t.Errorf("%s: it took %d MiB", place, took>>20)
		}
	}
}

func TestTheShapeOfARecord(t *testing.T) {
	for why, test := range map[string]struct {
		text string
		fits bool
	}{
		"as many values as are read":      {"[" + strings.Repeat("0,", maxValues-3) + "0]", true},
		"one more":                        {"[" + strings.Repeat("0,", maxValues) + "0]", false},
		"as deep as is read":              {strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth), true},
		"deeper":                          {strings.Repeat(`{"a":`, maxDepth+1), false},
		"the same characters, quoted":     {`"` + strings.Repeat(`[{,\"`, maxValues) + `"`, true},
		"quotes behind escaped backslash": {`["\\",` + strings.Repeat("0,", maxValues) + `0]`, false},
	} {
		if err := checkShape([]byte(test.text)); (err == nil) != test.fits {
			t.Errorf("%s: got %v", why, err)
		}
	}
	text := []byte(strings.Repeat(`{"a":["b",1]}`, maxDepth))
	if n := testing.AllocsPerRun(10, func() { _ = checkShape(text) }); n > 0 {
		t.Errorf("got %v allocations", n)
	}
}

func TestARecordOfTooManyValuesIsNotWritten(t *testing.T) {
	r := record(1, common.StatusPendingInstall)
	r.Config = map[string]any{"a": make([]any, maxValues)}
	secrets := fake.NewClientset().CoreV1().Secrets("ns")
	if err := storage.Init(newDriver(secrets, "K", "u1")).Create(r); err == nil || !strings.Contains(err.Error(), "JSON values") {
		t.Errorf("got %v", err)
	}
}
