//go:build long

package outcomes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/cores"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

const (
	group       = "outcomes.ensign.io"
	waitTimeout = harness.WaitTimeout
)

// TestDeletion runs some of the plays as finalizers of custom resources that are
// deleted, under the real manager and a real control plane. A resource goes
// exactly when Ansible calls its finalizer's run a success, and what its status
// says otherwise is what a run by the runner alone says: that holds the other
// plays, whose finalizers no manager runs, to the same.
func TestDeletion(t *testing.T) {
	cluster := controlplane.ForTest(t, controlplane.Options{Log: os.Stderr})
	k8s, err := client.New(cluster.Config, client.Options{})
	if err := errors.Join(err, apiextensionsv1.AddToScheme(scheme.Scheme)); err != nil {
		t.Fatal(err)
	}
	var kinds []watched
	project, watches := t.TempDir(), ""
	for i, p := range plays(t, func(p play) bool { return p.deletion }) {
		w := watched{client: k8s, play: p.in(asFinalizer), table: newTable(t), kind: schema.GroupKind{Group: group, Kind: fmt.Sprint("Kind", i)}}
		watches += w.lay(t, p)
		if err := harness.Define(t.Context(), k8s, harness.Definition(w.kind)); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, w)
	}
	scratch.Write(t, project, map[string]string{"watches.yaml": watches})
	m, err := harness.Start(harness.Options{
		Binary: filepath.Join(scratch.Repository(t), "bin", "manager"), Project: project, Home: scratch.Short(t), Kubeconfig: cluster.Kubeconfig,
		Args: []string{"--max-concurrent-reconciles=1"},
		Env:  []string{"PATH=" + cores.Find(t, ".venv").Bin + ":/usr/bin:/bin", "LANG=C.UTF-8", "ANSIBLE_GATHERING=explicit"},
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
	for _, w := range kinds {
		t.Run(w.play.name, w.check)
	}
}

// watched is a play that is the finalizer of a kind.
type watched struct {
	client client.Client
	play   play
	table  *table
	laid   laidOut
	kind   schema.GroupKind
}

// lay lays the play out, and returns the watch of the kind, whose own run always succeeds.
func (w *watched) lay(t *testing.T, p play) string {
	t.Helper()
	w.laid = w.table.lay(t, p, asFinalizer)
	name, playbook := "present.yml", ""
	if w.laid.spec.Playbook != "" {
		name, playbook = "main.yml", fmt.Sprintf(", playbook: %q", w.laid.spec.Playbook)
	}
	w.table.write(t, "roles/content/tasks/"+name, "- ansible.builtin.debug: {msg: hello}\n")
	return fmt.Sprintf("- {group: %s, version: v1, kind: %s, role: %q, finalizer: {name: %[1]s/finalizer, vars: {state: absent}%[4]s}}\n",
		group, w.kind.Kind, filepath.Join(w.table.content, "roles/content"), playbook)
}

// check deletes a resource and holds what becomes of it against Ansible.
func (w *watched) check(t *testing.T) {
	said := w.table.ansible(t, w.play, w.laid.playbook, w.laid.vars)
	alone := w.table.run(t, w.play, w.laid.spec, 1)
	w.play.expect(t, asFinalizer, alone)

	cr := harness.Custom(w.kind, "default", "sample", map[string]any{"size": int64(3), "message": "{{ untrusted }}"})
	if err := w.client.Create(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	w.await(t, cr, "success", func() bool { return harness.ConditionOf(cr, "Successful").Status == "True" })
	if err := w.client.Delete(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	if said.success() {
		w.await(t, cr, "its end", func() bool { return cr.GetUID() == "" })
		return
	}
	w.await(t, cr, "failure", func() bool { return harness.ConditionOf(cr, "Failure").Status == "True" })
	failure := harness.ConditionOf(cr, "Failure")
	if got := (content.Outcome{Verdict: content.Failed, Reason: content.Reason(failure.Reason), Message: failure.Message}); got != alone.Outcome {
		t.Errorf("got %+v, but by the runner alone %+v", got, alone.Outcome)
	}
	if len(cr.GetFinalizers()) != 1 {
		t.Errorf("the finalizer is gone: %v", cr.Object)
	}
	// It would run again and again.
	none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := w.client.Patch(t.Context(), cr, none); err != nil {
		t.Error(err)
	}
}

// await reads the resource until it is as wanted; one that is gone has no UID.
func (w *watched) await(t *testing.T, cr *unstructured.Unstructured, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, waitTimeout, true, func(ctx context.Context) (bool, error) {
		err := w.client.Get(ctx, client.ObjectKeyFromObject(cr), cr)
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
