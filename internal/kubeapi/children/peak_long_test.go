//go:build long

package children

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"

	"github.com/ensign-operator/ensign/test/harness/peak"
)

func TestPeakMemory(t *testing.T) {
	peak.Measure(t, []peak.Input{{Name: "child records: 1 MiB", MiB: 120, Make: func() func() error {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "ns", "name": "c"}, "data": map[string]any{"W.g": "[" + strings.Repeat("{},", 1<<20/3-9) + "{}]"},
		}}
		record := ConfigMap{Client: fake.NewSimpleDynamicClient(runtime.NewScheme(), object).Resource(configMaps).Namespace("ns"), Name: "c"}
		return func() error {
			_, err := record.Load(t.Context())
			return err
		}
	}}})
}
