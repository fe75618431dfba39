package ledger

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
)

// FuzzEntry reads an entry that somebody else has written. It is an error, or the same entry after it was
// written again.
func FuzzEntry(f *testing.F) {
	text, err := json.Marshal(entry("superseded", "deployed"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text), false, []byte(nil))
	f.Add(string(text), true, []byte(nil))
	f.Add("", false, []byte("\x1f\x8b\x08"))
	f.Add(`{"revisions":[null,{"objects":[{}]}]}`, true, []byte("\x1f"))
	f.Fuzz(func(t *testing.T, text string, packed bool, other []byte) {
		object := &corev1.ConfigMap{Data: map[string]string{textKey: text}}
		if packed {
			object.BinaryData = map[string][]byte{packedKey: pack(t, text)}
		} else if other != nil {
			object.BinaryData = map[string][]byte{packedKey: other}
		}
		e, err := decode(object)
		if err != nil {
			return
		}
		again, err := encode(e)
		if err != nil {
			t.Fatal(err)
		}
		read, err := decode(again)
		if diff := cmp.Diff(e, read, cmp.AllowUnexported(Entry{}), cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
	})
}

func TestAnEntryThatUnpacksToTooMuchIsRefused(t *testing.T) {
	text := `{"owner":{},"attempt":"` + strings.Repeat("a", maxUnpacked) + `"}`
	if _, err := decode(&corev1.ConfigMap{BinaryData: map[string][]byte{packedKey: pack(t, text)}}); err == nil {
		t.Error("it was read")
	}
	if _, err := encode(&Entry{Attempt: strings.Repeat("a", maxUnpacked)}); err == nil {
		t.Error("it was written")
	}
}

func pack(t *testing.T, text string) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}
