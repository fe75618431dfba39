//go:build long

package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/test/harness/peak"
)

func TestPeakMemory(t *testing.T) {
	owner := order.Owner{Kind: "K", Namespace: "ns", Name: "a"}
	s, known := order.Seal{Owner: owner, Keys: KeysFor(testKeys, owner)}, order.Revision{Version: 1, Attempt: attempt}
	reads := func(record, many string, n int) func() func() error {
		return func() func() error {
			var packed bytes.Buffer
			w := gzip.NewWriter(&packed)
			_, _ = w.Write([]byte(strings.Replace(record, "MANY", strings.Repeat(many, n), 1)))
			_ = w.Close()
			data := []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))
			return func() error {
				found, err := decode(data)
				if err == nil {
					_, err = verify(found, s, known)
				}
				return err
			}
		}
	}
	const (
		config   = `{"name":"r","info":{},"chart":{"metadata":{}},"config":{"a":[MANY0]}}`
		values   = `{"name":"r","info":{},"chart":{"metadata":{},"values":{"a":[MANY0]}}}`
		info     = `{"name":"r","info":{"resources":{"a":[MANYnull]}},"chart":{"metadata":{}}}`
		hooks    = `{"name":"r","info":{},"chart":{"metadata":{}},"hooks":[MANY{}]}`
		manifest = `{"name":"r","info":{},"chart":{"metadata":{}},"manifest":"MANY"}`
	)
	lists := func() func() error {
		owners := strings.Repeat(`{"apiVersion":"v1","kind":"K","name":"n","uid":"u"},`, 20_000)
		page := strings.Repeat(`{"metadata":{"name":"sh.helm.release.v1.a.v1","labels":{"version":"1"},"ownerReferences":[`+owners[:len(owners)-1]+`]}},`, pageSize)
		api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","items":[`+page[:len(page)-1]+`]}`)
		}))
		t.Cleanup(api.Close)
		return func() error {
			r, err := NewRecords(&rest.Config{Host: api.URL}, "ns", "a", s, nil)
			if err != nil {
				return err
			}
			all, err := r.List(t.Context())
			for _, one := range all {
				if len(one.references)+len(one.Links) > 0 {
					t.Error("a crowd of owners is kept")
				}
			}
			return err
		}
	}
	peak.Measure(t, []peak.Input{
		{Name: "record: a page of large metadata", MiB: 300, Make: lists},
		{Name: "record: most maps, in config", MiB: 200, Make: reads(config, `{"":0},`, maxValues/2-10)},
		{Name: "record: most maps, in values", MiB: 200, Make: reads(values, `{"":0},`, maxValues/2-10)},
		{Name: "record: most objects, in info", MiB: 200, Make: reads(info, `null,`, maxValues-10)},
		{Name: "record: most hooks", MiB: 200, Make: reads(hooks, `{},`, maxValues/2-10)},
		{Name: "record: most runs of hooks", MiB: 200, Make: reads(hooks, `{"last_run":{}},`, maxValues/3-10)},
		{Name: "record: longest", MiB: 200, Make: reads(manifest, "x", maxRecord-100)},
		{Name: "record: more maps", MiB: 100, Refused: true, Make: reads(config, `{"":0},`, maxRecord/7-100)},
		{Name: "record: a longer one", MiB: 100, Refused: true, Make: reads(manifest, "x", 300<<20)},
	})
}
