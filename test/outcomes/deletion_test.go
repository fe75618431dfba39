//go:build long

package outcomes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

const (
	group    = "outcomes.ensign.io"
	patience = 2 * time.Minute
)

// TestDeletion runs some of the plays as finalizers of custom resources that are
// deleted, under the real manager and a real control plane. A resource goes
// exactly when Ansible calls its finalizer's run a success, and what its status
// says otherwise is what a run by the runner alone says: that holds the other
// plays, whose finalizers no manager runs, to the same.
func TestDeletion(t *testing.T) {
	d := newDeletions(t)
	for _, p := range plays(t, func(p play) bool { return p.deletion }) {
		d.watch(t, p)
	}
	d.start(t)
	for _, w := range d.kinds {
		t.Run(w.play.name, func(t *testing.T) { d.check(t, w) })
	}
}

// deletions is a cluster, a manager, and a kind for each play.
type deletions struct {
	k8s     client.Client
	cluster *controlplane.Cluster
	dir     string // of the operator project
	watches strings.Builder
	kinds   []watched
}

// watched is a play that is the finalizer of a kind.
type watched struct {
	play  play
	bench *bench
	laid  content
	kind  string
}

func newDeletions(t *testing.T) *deletions {
	t.Helper()
	d := &deletions{dir: t.TempDir()}
	var err error
	d.cluster, err = controlplane.Start(t.Context(), controlplane.Options{Bin: filepath.Join("..", "..", "bin", "controlplane"), Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if d.k8s, err = client.New(d.cluster.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	return d
}

// watch lays a play out and gives it a kind whose own run always succeeds.
func (d *deletions) watch(t *testing.T, p play) {
	t.Helper()
	w := watched{play: p.in(asFinalizer), bench: newBench(t), kind: fmt.Sprintf("Kind%d", len(d.kinds))}
	w.laid = w.bench.lay(t, p, asFinalizer)
	finalizer := fmt.Sprintf("{name: %s/finalizer, vars: {state: absent}}", group)
	if w.laid.spec.Playbook != "" {
		finalizer = fmt.Sprintf("{name: %s/finalizer, vars: {state: absent}, playbook: %q}", group, w.laid.spec.Playbook)
		w.bench.write(t, "roles/content/tasks/main.yml", "- ansible.builtin.debug: {msg: hello}\n")
	} else {
		w.bench.write(t, "roles/content/tasks/present.yml", "- ansible.builtin.debug: {msg: hello}\n")
	}
	fmt.Fprintf(&d.watches, "- {group: %s, version: v1, kind: %s, role: %q, finalizer: %s}\n", group, w.kind, filepath.Join(w.bench.content, "roles/content"), finalizer)
	if err := harness.Define(t.Context(), d.k8s, harness.Definition(schema.GroupKind{Group: group, Kind: w.kind})); err != nil {
		t.Fatal(err)
	}
	d.kinds = append(d.kinds, w)
}

// start starts the manager, which ends orderly with the test.
func (d *deletions) start(t *testing.T) {
	t.Helper()
	scratch.Write(t, d.dir, map[string]string{"watches.yaml": d.watches.String()})
	m, err := harness.Start(harness.Options{
		Binary: filepath.Join(scratch.Repository(t), "bin", "manager"), Project: d.dir, Home: scratch.Short(t), Kubeconfig: d.cluster.Kubeconfig,
		Args: []string{"--max-concurrent-reconciles=1"},
		Env:  []string{"PATH=" + environment(t).Bin + ":/usr/bin:/bin", "LANG=C.UTF-8", "ANSIBLE_GATHERING=explicit"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Stop(); err != nil {
			t.Error(err)
		}
		if log, err := m.Log(); t.Failed() {
			t.Logf("the manager said (%v):\n%s", err, log)
		}
	})
}

// check deletes a resource and holds what becomes of it against Ansible.
func (d *deletions) check(t *testing.T, w watched) {
	said := w.bench.ansible(t, w.play, w.laid.playbook, w.laid.vars)
	alone := w.bench.run(t, w.play, w.laid.spec, 1)
	w.play.expect(t, asFinalizer, alone)

	kind := schema.GroupKind{Group: group, Kind: w.kind}
	cr := harness.Custom(kind, "default", "sample", map[string]any{"size": int64(3), "message": "{{ untrusted }}"})
	if err := d.k8s.Create(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	d.await(t, cr, "success", func() bool { return harness.ConditionOf(cr, "Successful").Status == "True" })
	if err := d.k8s.Delete(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	if said.success() {
		d.await(t, cr, "its end", func() bool { return cr.GetUID() == "" })
		return
	}
	d.await(t, cr, "failure", func() bool { return harness.ConditionOf(cr, "Failure").Status == "True" })
	failure := harness.ConditionOf(cr, "Failure")
	if got := (jobevent.Outcome{Verdict: jobevent.Failed, Reason: jobevent.Reason(failure.Reason), Message: failure.Message}); got != alone.Outcome {
		t.Errorf("got %+v, but by the runner alone %+v", got, alone.Outcome)
	}
	if len(cr.GetFinalizers()) != 1 {
		t.Errorf("the finalizer is gone: %v", cr.Object)
	}
	d.release(t, cr)
}

// release lets a resource go whose finalizer would run again and again.
func (d *deletions) release(t *testing.T, cr *unstructured.Unstructured) {
	t.Helper()
	none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := d.k8s.Patch(t.Context(), cr, none); err != nil {
		t.Error(err)
	}
}

// await reads the resource until it is as wanted; one that is gone has no UID.
func (d *deletions) await(t *testing.T, cr *unstructured.Unstructured, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := d.k8s.Get(ctx, client.ObjectKeyFromObject(cr), cr)
		if apierrors.IsNotFound(err) {
			cr.SetUID("")
			err = nil
		}
		return done(), err
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v: %v", what, err, cr.Object["status"])
	}
}
