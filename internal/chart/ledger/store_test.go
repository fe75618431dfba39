package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

var owner = order.Owner{Group: "g", Kind: "K", Namespace: "ns", Name: "a", UID: "u1"}

func TestAnEntryIsKept(t *testing.T) {
	for why, s := range map[string]*Store{
		"in the cluster": {ConfigMaps: fake.NewClientset().CoreV1().ConfigMaps("op"), Namespace: "op", Prefix: "ensign-release"},
		"in memory":      {},
	} {
		t.Run(why, func(t *testing.T) {
			e, err := s.Get(t.Context(), owner)
			if err != nil || e.Name != "" || e.Owner != owner {
				t.Fatalf("got %+v, %v", e, err)
			}
			e.Namespace, e.Name = "ns", "a"
			e.Begin(order.Install)
			if err := s.Put(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			r := order.Revision{Version: 1, Attempt: e.Attempt, Names: order.Names{Objects: []order.Object{{APIVersion: "v1", Kind: "ConfigMap", Name: "o"}}, DeletionHooks: true}}
			if err := s.Report(t.Context(), owner, r); err != nil {
				t.Fatal(err)
			}
			if err := s.Report(t.Context(), owner, order.Revision{Version: 2, Attempt: "other"}); err == nil {
				t.Error("another attempt has reported a revision")
			}
			found, err := s.Get(t.Context(), owner)
			if err != nil || cmp.Diff(found.Revisions, []order.Revision{r}) != "" {
				t.Errorf("got %+v, %v", found, err)
			}
			successor := owner
			successor.UID = "u2"
			if e, err := s.Get(t.Context(), successor); err != nil || e.Name != "" || e.Owner != successor {
				t.Errorf("a successor gets %+v, %v", e, err)
			}
			if err := s.Delete(t.Context(), found); err != nil {
				t.Fatal(err)
			}
			if e, err := s.Get(t.Context(), owner); err != nil || e.Name != "" {
				t.Errorf("after its deletion: %+v, %v", e, err)
			}
		})
	}
}

func TestTheCRsWithAnEntryAreListedByKind(t *testing.T) {
	client := fake.NewClientset()
	s := &Store{ConfigMaps: client.CoreV1().ConfigMaps("op"), Namespace: "op", Prefix: "p"}
	for _, of := range []order.Owner{owner, {Group: "g", Kind: "K", Name: "b", UID: "u2"}, {Group: "g", Kind: "Other", Name: "a", UID: "u3"}} {
		if err := s.Put(t.Context(), &Entry{Owner: of}); err != nil {
			t.Fatal(err)
		}
	}
	neighbour := &Store{ConfigMaps: s.ConfigMaps, Prefix: "q"}
	if err := neighbour.Put(t.Context(), &Entry{Owner: order.Owner{Group: "g", Kind: "K", Name: "of-another-operator", UID: "u4"}}); err != nil {
		t.Fatal(err)
	}
	broken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "p-0", Labels: map[string]string{Label: "p"}}, Data: map[string]string{textKey: "{"}}
	if _, err := s.ConfigMaps.Create(t.Context(), broken, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := s.CRs(t.Context(), schema.GroupKind{Group: "g", Kind: "K"})
	want := map[types.NamespacedName]types.UID{{Namespace: "ns", Name: "a"}: "u1", {Name: "b"}: "u2"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestALargeEntryIsPackedAndALargerOneRefused(t *testing.T) {
	for why, test := range map[string]struct {
		name func(i int) string
		want string
	}{
		"names that are alike": {func(int) string { return strings.Repeat("n", 200) }, ""},
		"names that differ":    {func(i int) string { return fmt.Sprintf("%x", strings.Repeat(fmt.Sprint(i*7919), 30)) + fmt.Sprint(i*i) }, ""},
	} {
		s := &Store{ConfigMaps: fake.NewClientset().CoreV1().ConfigMaps("op"), Prefix: "p"}
		e := entry("deployed")
		e.Owner = owner
		for i := range 8000 {
			e.Revisions[0].Objects = append(e.Revisions[0].Objects, order.Object{APIVersion: "v1", Kind: "ConfigMap", Name: test.name(i)})
		}
		if err := s.Put(t.Context(), e); err != nil {
			t.Fatalf("%s: %v", why, err)
		}
		found, err := s.Get(t.Context(), owner)
		if err != nil || cmp.Diff(found.Revisions, e.Revisions) != "" {
			t.Errorf("%s: %v", why, err)
		}
	}
}

func TestTheMissingRightIsNamed(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("*", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "a", nil)
	})
	s := &Store{ConfigMaps: client.CoreV1().ConfigMaps("op"), Namespace: "op", Prefix: "p"}
	_, err := s.Get(t.Context(), owner)
	_, listErr := s.CRs(t.Context(), schema.GroupKind{})
	for verb, err := range map[string]error{"get": err, "list": listErr, "create and patch": s.Put(t.Context(), entry()), "delete": s.Delete(t.Context(), &Entry{exists: true})} {
		if want := "the verbs " + verb + " for configmaps"; err == nil || !strings.Contains(err.Error(), want) || !apierrors.IsForbidden(err) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// An attempt reads its entry once and writes it three times: its begin, its revision, its end.
func TestWhatAnAttemptCosts(t *testing.T) {
	client := fake.NewClientset()
	s := &Store{ConfigMaps: client.CoreV1().ConfigMaps("op"), Namespace: "op", Prefix: "p"}
	for range 2 {
		client.ClearActions()
		e, err := s.Get(t.Context(), owner)
		if err != nil {
			t.Fatal(err)
		}
		e.Begin(order.Upgrade)
		if err := s.Put(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		if err := s.Report(t.Context(), owner, order.Revision{Version: 1, Attempt: e.Attempt}); err != nil {
			t.Fatal(err)
		}
		if e, err = s.Get(t.Context(), owner); err != nil || len(e.Revisions) != 1 {
			t.Fatalf("got %+v, %v", e, err)
		}
		e.Conclude(map[int]string{1: order.StatusDeployed}, func(int) bool { return true })
		if err := s.Put(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		if got := len(client.Actions()); got != 4 {
			t.Errorf("got %d requests: %v", got, client.Actions())
		}
	}
	if len(s.memory) > 0 {
		t.Errorf("the entry stays in memory: %v", s.memory)
	}
}

// Another manager has written the entry since: what is in memory does not count any more.
func TestAConflictEndsWhatIsInMemory(t *testing.T) {
	client := fake.NewClientset()
	s := &Store{ConfigMaps: client.CoreV1().ConfigMaps("op"), Namespace: "op", Prefix: "p"}
	e := entry()
	e.Owner = owner
	e.Begin(order.Install)
	if err := s.Put(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	client.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(corev1.Resource("configmaps"), "a", nil)
	})
	err := s.Report(t.Context(), owner, order.Revision{Version: 1, Attempt: e.Attempt})
	if !apierrors.IsConflict(err) || len(s.memory) > 0 {
		t.Errorf("got %v, %v in memory", err, s.memory)
	}
}
