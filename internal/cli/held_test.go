package cli

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ensign-operator/ensign/internal/watches"
)

// listing returns a client that answers lists by a function.
func listing(answer func(page *metav1.PartialObjectMetadataList, options *client.ListOptions) error) client.Client {
	return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return answer(list.(*metav1.PartialObjectMetadataList), (&client.ListOptions{}).ApplyOptions(options))
		},
	}).Build()
}

func TestHeldObjectsOfEachPageAreFound(t *testing.T) {
	watch := watches.Watch{GVK: schema.GroupVersionKind{Group: "g.example", Version: "v1", Kind: "Kind"}, Finalizer: &watches.Finalizer{Name: "g.example/ours", Former: "former"}}
	c := listing(func(page *metav1.PartialObjectMetadataList, options *client.ListOptions) error {
		if page.Kind != "KindList" || options.Namespace != "ns" || options.Limit == 0 {
			t.Errorf("asked for %s in %q, %d at once", page.Kind, options.Namespace, options.Limit)
		}
		at, _ := strconv.Atoi(options.Continue)
		object := func(name string, finalizers ...string) metav1.PartialObjectMetadata {
			return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name + strconv.Itoa(at), Finalizers: finalizers}}
		}
		page.Items = []metav1.PartialObjectMetadata{object("free"), object("held", "a.example/other", "g.example/ours"), object("others", "a.example/other"), object("long-held", "a.example/other", "former")}
		page.Continue = ""
		if at < 2 {
			page.Continue = strconv.Itoa(at + 1)
		}
		return nil
	})
	got, err := heldOf(t.Context(), c, watch, "ns")
	want := []string{}
	for _, page := range []string{"0", "1", "2"} {
		want = append(want, "Kind.g.example ns/held"+page+" has the finalizer g.example/ours", "Kind.g.example ns/long-held"+page+" has the finalizer former")
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

func TestAFailedListIsAnErrorAndNoEmptyOne(t *testing.T) {
	refused := errors.New("refused")
	c := listing(func(*metav1.PartialObjectMetadataList, *client.ListOptions) error { return refused })
	watch := watches.Watch{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Kind"}, Finalizer: &watches.Finalizer{Name: "x"}}
	if _, err := heldOf(t.Context(), c, watch, ""); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}
