package leadership

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientset "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/pkg/options"
)

func selector(t *testing.T, text string) labels.Selector {
	t.Helper()
	s, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestShardsOfOptions(t *testing.T) {
	elected := ctrl.Options{LeaderElection: true}
	for text, test := range map[string]struct {
		o     ctrl.Options
		fault string
	}{
		"":            {ctrl.Options{}, ""},
		"shard=a":     {elected, ""},
		"!shard":      {elected, ""},
		"shard=(":     {elected, "WatchLabelSelector=shard=("},
		"shard in (a": {elected, "WatchLabelSelector"},
		"shard=b":     {ctrl.Options{}, "--leader-elect"},
	} {
		shard, err := ParseShard(test.o, options.Options{WatchLabelSelector: text})
		if (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) || err == nil && (shard == nil) != (text == "") {
			t.Errorf("%q: got %v, %v", text, shard, err)
		}
	}
}

func TestEachShardHasALeaseOfItsOwn(t *testing.T) {
	names := map[string]bool{}
	for _, text := range []string{"!shard", "shard=a", "shard=b"} {
		names[ShardLease("op", selector(t, text))] = true
	}
	names[ShardLease("op", nil)] = true
	if len(names) != 4 || !names["op"] || ShardLease("op", selector(t, "a,b")) != ShardLease("op", selector(t, "b,a")) {
		t.Errorf("got %v", names)
	}
}

// labelled returns a client with a ConfigMap for each text, which is the value of its label "shard".
func labelled(values ...string) client.WithWatch {
	builder := fake.NewClientBuilder().WithScheme(scheme.Scheme)
	for _, value := range values {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "of-" + value, Labels: map[string]string{"shard": value}}}
		if value == "" {
			object.Name, object.Labels = "unlabelled", nil
		}
		builder = builder.WithObjects(object)
	}
	return builder.Build()
}

func TestAShardKnowsNoOtherResources(t *testing.T) {
	r := shardReader{labelled("", "a", "b"), selector(t, "shard=a")}
	for name, there := range map[string]bool{"of-a": true, "of-b": false, "unlabelled": false, "absent": false} {
		err := r.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, &corev1.ConfigMap{})
		if there && err != nil || !there && !apierrors.IsNotFound(err) {
			t.Errorf("%s: got %v", name, err)
		}
		if got, want := apierrors.HasStatusCause(err, controller.CauseNotSelected), !there && name != "absent"; got != want {
			t.Errorf("%s: another shard's is %v, want %v", name, got, want)
		}
	}
	list := &corev1.ConfigMapList{}
	if err := r.List(t.Context(), list, client.InNamespace("ns")); err != nil || len(list.Items) != 1 || list.Items[0].Name != "of-a" {
		t.Errorf("got %v, %v", list.Items, err)
	}
}

func TestTheFirstShardCountsWhatNoneSelects(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	kubernetes, before := clientset.NewClientset(), 0
	leases := kubernetes.CoordinationV1().Leases("ns")
	counted := map[string]int{}
	newCounter := func(text string, holder string, age time.Duration) *unmatchedCounter {
		c := &unmatchedCounter{
			leases: leases, base: "op", lease: ShardLease("op", selector(t, text)), shard: selector(t, text), reader: labelled("", "a", "b", "typo", "a2"), kinds: []schema.GroupVersionKind{kind},
			report: func(_ schema.GroupVersionKind, n int) { counted[text] = n }, log: logr.Discard(),
		}
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: c.lease, CreationTimestamp: metav1.Unix(int64(len(counted)), 0)}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: new(metav1.NewMicroTime(time.Now().Add(-age)))}}
		if _, err := leases.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		counted[text] = -1
		return c
	}
	all := []*unmatchedCounter{newCounter("shard=b", "", 0), newCounter("shard=a2", "killed", time.Hour), newCounter("!shard", "x", time.Second), newCounter("shard=a", "y", 0)}
	for range 2 { // By the second time each has said what it selects.
		before = len(kubernetes.Actions())
		for _, c := range all {
			if err := c.count(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Nobody holds the lease of shard=b, or renews that of shard=a2, and "!shard" is the first of the others.
	if counted["!shard"] != 3 || counted["shard=a"] != 0 || counted["shard=b"] != 0 {
		t.Errorf("got %v, want 3 that nobody has: b, typo, a2", counted)
	}
	for _, action := range kubernetes.Actions()[before:] {
		if action.GetVerb() == "patch" {
			t.Errorf("a shard said again what it selects: %v", action)
		}
	}
}
