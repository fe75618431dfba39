package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhatIsServedInPlaceOfAKind(t *testing.T) {
	served := []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "secrets", Kind: "Secret"}, {Name: "pods", Kind: "Pod"}, {Name: "pods/eviction", Kind: "Eviction"}}},
		{GroupVersion: "demo.example.com/v1beta1", APIResources: []metav1.APIResource{{Name: "greetings", Kind: "Greeting"}, {Name: "greetings/status", Kind: "Greeting"}}},
		{GroupVersion: "demo.example.com/v2", APIResources: []metav1.APIResource{{Name: "greetings", Kind: "Greeting"}}},
		{GroupVersion: "a/b/c", APIResources: []metav1.APIResource{{Name: "greetings", Kind: "Greeting"}}},
	}
	for name, test := range map[string]struct {
		wanted schema.GroupKind
		want   []string
	}{
		"other versions of the kind":  {schema.GroupKind{Group: "demo.example.com", Kind: "Greeting"}, []string{"demo.example.com/v1beta1, Kind=Greeting", "demo.example.com/v2, Kind=Greeting"}},
		"a kind in upper case":        {schema.GroupKind{Group: "demo.example.com", Kind: "GREETING"}, []string{"demo.example.com/v1beta1, Kind=Greeting", "demo.example.com/v2, Kind=Greeting"}},
		"the plural of a kind":        {schema.GroupKind{Group: "demo.example.com", Kind: "Greetings"}, []string{"demo.example.com/v1beta1, Kind=Greeting", "demo.example.com/v2, Kind=Greeting"}},
		"a group with a typing error": {schema.GroupKind{Group: "demo.exampel.com", Kind: "Greeting"}, []string{"demo.example.com/v1beta1, Kind=Greeting", "demo.example.com/v2, Kind=Greeting"}},
		"a kind of the core group":    {schema.GroupKind{Kind: "Sekret"}, []string{"/v1, Kind=Secret"}},
		"a subresource is no kind":    {schema.GroupKind{Kind: "Eviction"}, nil},
		"nothing that is like it":     {schema.GroupKind{Group: "databases.example.org", Kind: "MySQL"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, servedInstead(test.wanted, served)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
