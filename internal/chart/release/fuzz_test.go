package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"testing"

	"helm.sh/helm/v4/pkg/release/common"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

// FuzzRecord reads what a tenant has written into the Secret of a revision. The scan counts each value that decoding
// would make, and no record counts but one that was sealed.
func FuzzRecord(f *testing.F) {
	owner := order.Owner{Group: "g", Kind: "K", Namespace: "ns", Name: "a", UID: "u1"}
	s := order.Seal{Owner: owner, Keys: KeysFor(testKeys, owner)}
	known := order.Revision{Version: 1, Attempt: attempt, Status: order.StatusDeployed}
	sealed := record(1, common.StatusDeployed)
	if err := Seal(sealed, s, attempt); err != nil {
		f.Fatal(err)
	}
	text, err := json.Marshal(sealed)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, true)
	f.Add(text, false)
	f.Add([]byte(`{"info":{"resources":{"a":[null]}},"chart":{"metadata":{}},"hooks":[null,{"last_run":{}}],"config":{"\"":[{},[],"\\"]}}`), false)
	f.Add([]byte("\x1f\x8b\x08"), false)
	f.Fuzz(func(t *testing.T, text []byte, packed bool) {
		data := text
		if packed {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			_, _ = w.Write(text) // A buffer takes all.
			_ = w.Close()
			data = b.Bytes()
		}
		checkScan(t, text)
		found, err := decode([]byte(base64.StdEncoding.EncodeToString(data)))
		if err != nil {
			return
		}
		found.Labels = sealed.Labels
		before, _ := json.Marshal(found)
		verified, err := verify(found, s, known)
		if err != nil || verified == nil {
			return
		}
		// What is sealed is all but the state, which is the ledger's.
		want, _, _ := seals(sealed, owner, attempt)
		got, _, _ := seals(verified, owner, attempt)
		if verified.Info.Status != common.StatusDeployed || !bytes.Equal(normal(t, want), normal(t, got)) {
			t.Errorf("%s counts", before)
		}
	})
}

// normal returns JSON with its numbers as they are read.
func normal(t *testing.T, text []byte) []byte {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// checkScan compares the scan with what decoding makes.
func checkScan(t *testing.T, text []byte) {
	t.Helper()
	var value any
	if json.Unmarshal(text, &value) != nil {
		return
	}
	values, depth := measure(value)
	if !exceeds(text, values-1, math.MaxInt) {
		t.Errorf("fewer than %d values are counted in %q", values, text)
	}
	if depth > 0 && !exceeds(text, math.MaxInt, depth-1) {
		t.Errorf("%q is less than %d deep", text, depth)
	}
}

// measure returns how many values a value has with those in it, and how deep they are nested.
func measure(value any) (values, depth int) {
	var inner []any
	switch v := value.(type) {
	case map[string]any:
		inner, depth = slices.Collect(maps.Values(v)), 1
	case []any:
		inner, depth = v, 1
	}
	values = 1
	deepest := 0
	for _, one := range inner {
		n, d := measure(one)
		values, deepest = values+n, max(deepest, d)
	}
	return values, depth + deepest
}
