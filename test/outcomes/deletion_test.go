//go:build long

package outcomes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
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
	if err := d.k8s.Create(t.Context(), definition(w.kind)); err != nil {
		t.Fatal(err)
	}
	d.kinds = append(d.kinds, w)
}

// start starts the manager, which ends orderly with the test.
func (d *deletions) start(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, "watches.yaml"), []byte(d.watches.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	binary, err := filepath.Abs("../../bin/manager")
	if err != nil {
		t.Fatal(err)
	}
	runs, err := os.MkdirTemp("/tmp", "out") //nolint:usetesting // The path of t.TempDir is as long as the test's name.
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command(binary, append([]string{
		"run", "--kubeconfig=" + d.cluster.Kubeconfig, "--run-dir=" + filepath.Join(runs, "runs"),
		"--max-backoff=10s", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--user-metrics-bind-address=0", "--max-concurrent-reconciles=1",
	}, harness.Mode()...)...)
	cmd.Dir = d.dir
	bin := environment(t).Bin
	cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + d.dir, "LANG=C.UTF-8", "ANSIBLE_GATHERING=explicit"}
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the manager: %v", err)
		}
		if t.Failed() {
			t.Logf("the manager said:\n%s", log.String())
		}
		if err := os.RemoveAll(runs); err != nil {
			t.Error(err)
		}
	})
}

// check deletes a resource and holds what becomes of it against Ansible.
func (d *deletions) check(t *testing.T, w watched) {
	said := w.bench.ansible(t, w.play, w.laid.playbook, w.laid.vars)
	alone := w.bench.run(t, w.play, w.laid.spec, 1)
	w.play.expect(t, asFinalizer, alone)

	cr := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(3), "message": "{{ untrusted }}"}}}
	cr.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: w.kind})
	cr.SetNamespace("default")
	cr.SetName("sample")
	if err := d.k8s.Create(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	d.await(t, cr, "success", func() bool { return conditionOf(cr, "Successful")["status"] == "True" })
	if err := d.k8s.Delete(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	if said.success() {
		d.await(t, cr, "its end", func() bool { return cr.GetUID() == "" })
		return
	}
	d.await(t, cr, "failure", func() bool { return conditionOf(cr, "Failure")["status"] == "True" })
	failure := conditionOf(cr, "Failure")
	if got := (jobevent.Outcome{Verdict: jobevent.Failed, Reason: jobevent.Reason(failure["reason"].(string)), Message: failure["message"].(string)}); got != alone.Outcome {
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
