package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/ensign-operator/ensign/internal/jobs/serve"
	"github.com/ensign-operator/ensign/internal/jobs/template"
	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

const kubeconfig = `
contexts: [{name: c, context: {user: u, namespace: tenant}}]
users: [{name: u, user: {token: of-the-grant}}]
current-context: c
`

// created is when all Jobs are.
var created = metav1.NewTime(time.Unix(1000, 0))

// bench is a cluster with managers.
type bench struct {
	*testing.T

	client *fake.Clientset
	placed chan string
	events []string
}

func newBench(t *testing.T) *bench {
	b := &bench{T: t, client: fake.NewClientset(), placed: make(chan string, 100)}
	made := 0
	b.client.PrependReactor("create", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		made++
		job := action.(clienttesting.CreateAction).GetObject().(*batchv1.Job)
		job.UID, job.CreationTimestamp = types.UID(fmt.Sprint("job-", made)), created
		return false, nil, nil
	})
	return b
}

// manager returns the executor of a new manager, which stops with ctx.
func (b *bench) manager(ctx context.Context) *Runner {
	b.Helper()
	x, err := New(b.client, "ops", "ours", logr.Discard())
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = x.Start(ctx) }()
	if !x.waitUntilKnown(ctx) {
		b.Fatal("the Jobs are not known")
	}
	return &Runner{Executor: x, ManageStatus: true, Source: template.Source{
		Namespace: "ops", Operator: "ours", Executable: "/manager", Watch: watches.Job{PodTemplate: map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "manager", "image": "i"}}}}},
	}}
}

// begin starts a run of the CR u and returns the channel of its result.
func (b *bench) begin(ctx context.Context, x *Runner, attempt run.Attempt, id string) <-chan run.Result {
	attempt.Located = func(place, waits string) { b.placed <- place + "|" + waits }
	result := make(chan run.Result, 1)
	go func() {
		result <- x.Run(ctx, run.Spec{UID: "u", ID: id, CR: "tenant/cr", Kubeconfig: []byte(kubeconfig)}, attempt, func(event []byte) { b.events = append(b.events, string(event)) })
	}()
	return result
}

// job waits for the Job of the CR u that is live at the manager.
func (b *bench) job(x *Runner) *batchv1.Job {
	b.Helper()
	return scratchWait(b, func() *batchv1.Job {
		job, err := b.client.BatchV1().Jobs("ops").Get(b.Context(), "ensign-run-u", metav1.GetOptions{})
		if err != nil || x.liveRun(job.UID) == nil {
			return nil
		}
		return job
	})
}

func scratchWait[T any](b *bench, look func() *T) *T {
	b.Helper()
	for deadline := time.Now().Add(scratch.WaitTimeout); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if found := look(); found != nil {
			return found
		}
	}
	b.Fatal("it does not come")
	return nil
}

func (b *bench) claim(x *Runner, job *batchv1.Job, pod types.UID) (wire.Assignment, error) {
	return x.Claim(b.Context(), types.NamespacedName{Namespace: "ops", Name: job.Name}, job.UID, pod)
}

func (b *bench) mustClaim(x *Runner, job *batchv1.Job, pod types.UID) (wire.Assignment, serve.Live) {
	b.Helper()
	assignment, err := b.claim(x, job, pod)
	if err != nil {
		b.Fatal(err)
	}
	live, ok := x.Live(job.UID, assignment.Spec.ID)
	if !ok {
		b.Fatal("the run is not live")
	}
	return assignment, live
}

func tasks(names ...string) []json.RawMessage {
	var all []json.RawMessage
	for _, name := range names {
		all = append(all, json.RawMessage(name))
	}
	return all
}

// end waits for the result.
func (b *bench) end(result <-chan run.Result) run.Result {
	b.Helper()
	select {
	case r := <-result:
		return r
	case <-time.After(scratch.WaitTimeout):
		b.Fatal("the run does not end")
		return run.Result{}
	}
}

func success(id string, events int64) wire.Result {
	return wire.Result{
		RunID: id, Events: events,
		Result: run.Result{Outcome: content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful, Message: "done"}, Ended: time.Unix(1, 0)},
	}
}

// pod makes or changes the pod of the Job.
func (b *bench) pod(job *batchv1.Job, uid types.UID, status string) {
	b.Helper()
	yes := true
	pod := parsed[corev1.Pod](b.T, "status: "+status)
	pod.ObjectMeta = metav1.ObjectMeta{
		Namespace: "ops", Name: string(uid), UID: uid, Labels: map[string]string{template.RunLabel: "true"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: &yes}},
	}
	if _, err := b.client.CoreV1().Pods("ops").Create(b.Context(), pod, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		_, err = b.client.CoreV1().Pods("ops").Update(b.Context(), pod, metav1.UpdateOptions{})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func (b *bench) noJob() {
	b.Helper()
	scratchWait(b, func() *bool {
		_, err := b.client.BatchV1().Jobs("ops").Get(b.Context(), "ensign-run-u", metav1.GetOptions{})
		gone := apierrors.IsNotFound(err)
		if !gone {
			return nil
		}
		return &gone
	})
}

func TestARunInAJob(t *testing.T) {
	b := newBench(t)
	x := b.manager(t.Context())
	result := b.begin(t.Context(), x, run.Attempt{Request: "r"}, "run-1")
	job := b.job(x)
	assignment, live := b.mustClaim(x, job, "pod-1")
	if assignment.Spec.UID != "u" || assignment.Namespace != "tenant" || assignment.Spec.Kubeconfig != nil || live.ProxyToken() != "of-the-grant" {
		t.Errorf("got %+v, and the token %q", assignment, live.ProxyToken())
	}
	if again, err := b.claim(x, job, "pod-1"); err != nil || again.Spec.ID != "run-1" {
		t.Errorf("the pod claims again: %+v, %v", again, err)
	}
	if _, err := b.claim(x, job, "pod-2"); !errors.Is(err, serve.ErrTaken) {
		t.Errorf("a second pod: %v", err)
	}
	if _, err := b.claim(x, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "ensign-run-u", UID: "other"}}, "pod-3"); !errors.Is(err, serve.ErrUnknown) {
		t.Errorf("a pod of another Job: %v", err)
	}
	for i, batch := range []struct {
		first int64
		tasks []string
		next  int64
	}{{1, []string{"a", "b"}, 3}, {1, []string{"a", "b", "c"}, 4}, {9, []string{"too early"}, 4}, {4, nil, 4}} {
		if next, err := live.Events(t.Context(), batch.first, tasks(batch.tasks...)); err != nil || next != batch.next {
			t.Errorf("batch %d: %d, %v", i, next, err)
		}
	}
	if err := live.Result(t.Context(), success("run-1", 5)); err == nil {
		t.Error("a result without its events was taken")
	}
	if err := live.Result(t.Context(), success("run-0", 3)); err == nil {
		t.Error("the result of another run was taken")
	}
	if err := live.Result(t.Context(), success("run-1", 3)); err != nil {
		t.Error(err)
	}
	got := b.end(result)
	if got.Outcome.Verdict != content.Succeeded || !got.Remote || got.Detached || !got.Started.After(created.Time) {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, b.events); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
	if _, ok := x.Live(job.UID, "run-1"); ok {
		t.Error("the run has ended, and is live")
	}
	if _, err := b.client.BatchV1().Jobs("ops").Get(t.Context(), job.Name, metav1.GetOptions{}); err != nil {
		t.Errorf("the Job went before its result was written: %v", err)
	}
	x.ResultStored("u")
	b.noJob()
	for _, action := range b.client.Actions() {
		deletion, is := action.(clienttesting.DeleteActionImpl)
		if !is {
			continue
		}
		if o := deletion.DeleteOptions; o.Preconditions == nil || *o.Preconditions.UID != job.UID || *o.PropagationPolicy != metav1.DeletePropagationForeground {
			t.Errorf("another Job of the name could be deleted, or one whose pod is there: %+v", o)
		}
	}
}

// The next manager goes on with a run, under its ID and from the event that comes next. The second
// pod of the Job is refused there too.
func TestTheNextManagerAdoptsALiveRun(t *testing.T) {
	b := newBench(t)
	first, stop := context.WithCancel(t.Context())
	old := b.manager(first)
	result := b.begin(first, old, run.Attempt{Request: "r"}, "run-1")
	job := b.job(old)
	_, live := b.mustClaim(old, job, "pod-1")
	if _, err := live.Events(t.Context(), 1, tasks("a")); err != nil {
		t.Fatal(err)
	}
	stop()
	if got := b.end(result); !got.Detached || got.Outcome.Verdict != content.Canceled {
		t.Fatalf("the manager stops: %+v", got)
	}
	if _, err := live.Events(t.Context(), 2, tasks("late")); err == nil {
		t.Error("a manager that stops took events")
	}
	next := b.manager(t.Context())
	attempt := run.Attempt{Request: "r", Interrupted: true}
	if !next.IsResumable(t.Context(), "u", attempt) || next.IsResumable(t.Context(), "u", run.Attempt{Request: "r"}) || next.IsResumable(t.Context(), "v", attempt) {
		t.Error("it does not say which runs are live")
	}
	result = b.begin(t.Context(), next, attempt, "run-2")
	if same := b.job(next); same.UID != job.UID {
		t.Fatalf("it has another Job: %s", same.UID)
	}
	if _, err := b.claim(next, job, "pod-2"); !errors.Is(err, serve.ErrTaken) {
		t.Errorf("a second pod: %v", err)
	}
	assignment, live := b.mustClaim(next, job, "pod-1")
	if assignment.Spec.ID != "run-1" {
		t.Errorf("the run has another ID: %q", assignment.Spec.ID)
	}
	if n, err := live.Events(t.Context(), 7, tasks("b")); n != 8 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if err := live.Result(t.Context(), success("run-1", 7)); err != nil {
		t.Error(err)
	}
	if got := b.end(result); got.Outcome.Verdict != content.Succeeded || !got.Started.Equal(created.Time) || !got.Ended.After(got.Started) {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"a", "b"}, b.events); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
}

// A run that was claimed for something else ends first, and its result is nobody's.
func TestAnotherRunIsOutlivedAndItsResultDropped(t *testing.T) {
	b := newBench(t)
	first, stop := context.WithCancel(t.Context())
	old := b.manager(first)
	result := b.begin(first, old, run.Attempt{Request: "old"}, "run-1")
	job := b.job(old)
	b.mustClaim(old, job, "pod-1")
	stop()
	b.end(result)
	x := b.manager(t.Context())
	result = b.begin(t.Context(), x, run.Attempt{Request: "new", Interrupted: true}, "run-2")
	b.job(x)
	_, live := b.mustClaim(x, job, "pod-1")
	if err := live.Result(t.Context(), success("run-1", 0)); err != nil {
		t.Fatal(err)
	}
	job = scratchWait(b, func() *batchv1.Job {
		if next := b.job(x); next.UID != job.UID {
			return next
		}
		return nil
	})
	_, live = b.mustClaim(x, job, "pod-2")
	if err := live.Result(t.Context(), wire.Result{RunID: "run-2", Result: run.Result{Outcome: content.Outcome{Verdict: content.Failed, Reason: content.ReasonFailed}, Ended: time.Unix(1, 0)}}); err != nil {
		t.Fatal(err)
	}
	if got := b.end(result); got.Outcome.Verdict != content.Failed {
		t.Errorf("got %+v", got)
	}
}

func TestARunThatIsNotWantedIsEndedAndItsEndWaitedFor(t *testing.T) {
	b := newBench(t)
	x := b.manager(t.Context())
	ctx, end := context.WithCancelCause(t.Context())
	result := b.begin(ctx, x, run.Attempt{Request: "r"}, "run-1")
	job := b.job(x)
	b.pod(job, "pod-1", "{phase: Running}")
	_, live := b.mustClaim(x, job, "pod-1")
	scratchWait(b, func() *corev1.Pod { return x.pod(job.UID, "") })
	end(fmt.Errorf("deleted: %w", content.ErrUnwanted))
	b.noJob()
	said, enough := context.WithTimeout(t.Context(), scratch.WaitTimeout)
	defer enough()
	if _, err := live.Events(said, 1, tasks("last")); err != nil {
		t.Errorf("the agent is kept from ending: %v", err)
	}
	if err := live.Result(said, wire.Result{RunID: "run-1", Result: run.Result{Outcome: canceled("TERM")}, Events: 1}); err != nil {
		t.Errorf("the agent is kept from ending: %v", err)
	}
	select {
	case r := <-result:
		t.Fatalf("its pod is there, and the run has ended: %+v", r)
	case <-time.After(500 * time.Millisecond): // Two looks.
	}
	if err := b.client.CoreV1().Pods("ops").Delete(t.Context(), "pod-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := b.end(result); got.Detached || got.Outcome.Verdict != content.Canceled {
		t.Errorf("got %+v", got)
	}
}

// forbid makes the API server refuse the deletion of Jobs.
func (b *bench) forbid() {
	b.client.PrependReactor("delete", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "ensign-run-u", errors.New("no rights"))
	})
}

// Runs wait for it, and somebody has to be told.
func TestTheManagerIsNotReadyBeforeItKnowsTheJobs(t *testing.T) {
	b := newBench(t)
	b.client.PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "", errors.New("no rights"))
	})
	x, err := New(b.client, "ops", "ours", logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Check(nil); err == nil || !strings.Contains(err.Error(), "not known yet") {
		t.Error(err)
	}
	go func() { _ = x.Start(t.Context()) }()
	scratchWait(b, func() *error {
		if err := x.Check(nil); err == nil || !strings.Contains(err.Error(), "no rights") {
			return nil
		}
		return &err
	})
	if err := newBench(t).manager(t.Context()).Check(nil); err != nil {
		t.Error(err)
	}
}

// The manager goes on, so that the run is not left to the next one: somebody has to be told.
func TestARunThatCannotBeEndedFails(t *testing.T) {
	b := newBench(t)
	x := b.manager(t.Context())
	ctx, end := context.WithCancelCause(t.Context())
	result := b.begin(ctx, x, run.Attempt{Request: "r"}, "run-1")
	b.job(x)
	b.forbid()
	end(fmt.Errorf("deleted: %w", content.ErrUnwanted))
	if got := b.end(result); got.Detached || got.Outcome.Verdict != content.Failed || !strings.Contains(got.Outcome.Message, "no rights") {
		t.Errorf("got %+v", got)
	}
}

func TestAPodThatHasLostItsJobIsEndedToo(t *testing.T) {
	b := newBench(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "pod-1", UID: "pod-1", Labels: map[string]string{template.RunLabel: "true", batchv1.JobNameLabel: "ensign-run-u"}}}
	if _, err := b.client.CoreV1().Pods("ops").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := b.manager(t.Context()).Terminate(t.Context(), "u"); err != nil {
		t.Error(err)
	}
	if left, err := b.client.CoreV1().Pods("ops").List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
		t.Errorf("left: %+v, %v", left, err)
	}
}

// A conflict says that the Job is another's by now, but a webhook or a busy etcd may answer so as well.
func TestADeletionThatMeetsAConflictIsRepeated(t *testing.T) {
	b := newBench(t)
	x := b.manager(t.Context())
	ctx, end := context.WithCancelCause(t.Context())
	result := b.begin(ctx, x, run.Attempt{Request: "r"}, "run-1")
	b.job(x)
	conflicts := 2
	b.client.PrependReactor("delete", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		conflicts--
		return conflicts >= 0, nil, apierrors.NewConflict(schema.GroupResource{Resource: "jobs"}, "ensign-run-u", errors.New("try again"))
	})
	end(fmt.Errorf("deleted: %w", content.ErrUnwanted))
	if got := b.end(result); got.Detached || got.Outcome.Verdict != content.Canceled {
		t.Errorf("got %+v", got)
	}
	b.noJob()
	if err := x.delete(t.Context(), "ensign-run-u", "another's"); err != nil {
		t.Errorf("a Job that is gone: %v", err)
	}
}

// What an earlier manager has left for a CR that is to have no run is ended, and waited for.
func TestWhatIsLeftIsEnded(t *testing.T) {
	b := newBench(t)
	if err := b.manager(t.Context()).Terminate(t.Context(), "u"); err != nil {
		t.Errorf("nothing is left: %v", err)
	}
	first, stop := context.WithCancel(t.Context())
	old := b.manager(first)
	result := b.begin(first, old, run.Attempt{Request: "r"}, "run-1")
	job := b.job(old)
	stop()
	b.end(result)
	b.pod(job, "pod-1", "{phase: Running}")
	next := b.manager(t.Context())
	ended := make(chan error)
	go func() { ended <- next.Terminate(t.Context(), "u") }()
	b.noJob()
	select {
	case err := <-ended:
		t.Fatalf("its pod is there, and it has ended: %v", err)
	case <-time.After(500 * time.Millisecond): // Two looks.
	}
	if err := b.client.CoreV1().Pods("ops").Delete(t.Context(), "pod-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// An agent that gets TERM reports a canceled run. Nobody would repeat that.
func TestAPodThatIsEndedByKubernetesFails(t *testing.T) {
	b := newBench(t)
	x := b.manager(t.Context())
	result := b.begin(t.Context(), x, run.Attempt{Request: "r"}, "run-1")
	job := b.job(x)
	b.pod(job, "pod-1", "{phase: Running}")
	_, live := b.mustClaim(x, job, "pod-1")
	ended := wire.Result{RunID: "run-1", Result: run.Result{Outcome: content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled}, Ended: time.Unix(1, 0)}}
	if err := live.Result(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	said, err := wire.EncodeTermination(ended)
	if err != nil {
		t.Fatal(err)
	}
	b.pod(job, "pod-1", "{phase: Failed, reason: Evicted, message: too much, containerStatuses: [{name: manager, state: {terminated: {message: '"+string(said)+"'}}}]}")
	if got := b.end(result); got.Outcome.Verdict != content.Failed || !strings.Contains(got.Outcome.Message, "Evicted: too much") {
		t.Errorf("got %+v", got)
	}
}

// Nothing of a Job changes when its pod is refused, so that the manager has to look again soon after it was admitted.
func TestARefusedPodIsToldOfSoonAlsoAfterALongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		b := newBench(t)
		x := b.manager(ctx)
		result := b.begin(ctx, x, run.Attempt{Request: "r"}, "run-1")
		job := b.job(x)
		suspend := func(suspended bool) {
			job.Labels[queueLabel], job.Spec.Suspend = "nightly", &suspended
			if _, err := b.client.BatchV1().Jobs("ops").Update(ctx, job, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		says := func(words string) time.Duration {
			for began := time.Now(); ; {
				select {
				case said := <-b.placed:
					if strings.Contains(said, words) {
						return time.Since(began)
					}
				case <-time.After(time.Hour):
					t.Fatalf("nobody says %q", words)
				}
			}
		}
		suspend(true)
		says(`until the queue "nightly" admits it`)
		time.Sleep(10*time.Minute + 5*time.Second)
		suspend(false)
		time.Sleep(time.Second)
		refused := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "e"}, Reason: "FailedCreate", Message: "exceeded quota: team",
			InvolvedObject: corev1.ObjectReference{UID: job.UID}, LastTimestamp: metav1.Now(),
		}
		if _, err := b.client.CoreV1().Events("ops").Create(ctx, refused, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if took := says("exceeded quota: team"); took > 10*time.Second {
			t.Errorf("it was told after %s", took)
		}
		stop()
		b.end(result)
	})
}

// People can read the log of a pod that has ended without a result until the next run replaces its Job,
// which may use up the quota for the next one.
func TestWhatEndedWithoutAResultStaysUntilTheNextRun(t *testing.T) {
	t.Run("where the watch has shown its Job", func(t *testing.T) { staysUntilTheNextRun(t, 0) })
	t.Run("where it shows it late", func(t *testing.T) { staysUntilTheNextRun(t, 2) })
}

// late is a lister that finds no Job for so many times.
type late struct {
	batchlisters.JobLister

	times atomic.Int32
}

func (l *late) Jobs(namespace string) batchlisters.JobNamespaceLister {
	return lateIn{l.JobLister.Jobs(namespace), l}
}

type lateIn struct {
	batchlisters.JobNamespaceLister

	*late
}

func (l lateIn) Get(name string) (*batchv1.Job, error) {
	if l.times.Add(-1) >= 0 {
		return nil, apierrors.NewNotFound(batchv1.Resource("jobs"), name)
	}
	return l.JobNamespaceLister.Get(name)
}

func staysUntilTheNextRun(t *testing.T, lateBy int32) {
	t.Helper()
	b := newBench(t)
	b.client.PrependReactor("create", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		if all, err := b.client.Tracker().List(batchv1.SchemeGroupVersion.WithResource("jobs"), batchv1.SchemeGroupVersion.WithKind("Job"), "ops"); err != nil || len(all.(*batchv1.JobList).Items) == 0 {
			return false, nil, err
		}
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "", errors.New("exceeded quota: one"))
	})
	x := b.manager(t.Context())
	result := b.begin(t.Context(), x, run.Attempt{Request: "r"}, "run-1")
	first := b.job(x)
	b.pod(first, "pod-1", "{phase: Failed, containerStatuses: [{name: manager, state: {terminated: {reason: Error, exitCode: 1}}}]}")
	if got := b.end(result); !strings.Contains(got.Outcome.Message, "kubectl logs -n ops pod-1") {
		t.Errorf("got %+v", got)
	}
	if _, removed := x.ended["u"]; removed {
		t.Error("the Job is removed when the failure is written")
	}
	x.ResultStored("u")
	jobs := &late{JobLister: x.jobList}
	jobs.times.Store(lateBy)
	x.jobList = jobs
	result = b.begin(t.Context(), x, run.Attempt{Request: "r"}, "run-2")
	scratchWait(b, func() *bool { // The next run removes it, and not the result.
		for _, action := range b.client.Actions() {
			if _, is := action.(clienttesting.DeleteAction); is {
				return new(true)
			}
		}
		return nil
	})
	if err := b.client.CoreV1().Pods("ops").Delete(t.Context(), "pod-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	second := b.job(x)
	_, live := b.mustClaim(x, second, "pod-2")
	if err := live.Result(t.Context(), success("run-2", 0)); err != nil {
		t.Fatal(err)
	}
	if got := b.end(result); got.Outcome.Verdict != content.Succeeded {
		t.Errorf("got %+v", got)
	}
	x.ResultStored("u")
	b.noJob()
}

// The termination message is the result if no manager was there to take it.
func TestATerminationMessageIsAResultOfItsOwnRunAlone(t *testing.T) {
	for id, want := range map[string]content.Verdict{"run-1": content.Succeeded, "run-0": content.Failed} {
		b := newBench(t)
		x := b.manager(t.Context())
		result := b.begin(t.Context(), x, run.Attempt{Request: "r"}, "run-1")
		job := b.job(x)
		said, err := wire.EncodeTermination(success(id, 0))
		if err != nil {
			t.Fatal(err)
		}
		b.pod(job, "pod-1", "{phase: Succeeded, containerStatuses: [{name: manager, state: {terminated: {message: '"+string(said)+"'}}}]}")
		if got := b.end(result); got.Outcome.Verdict != want {
			t.Errorf("a message of %s: %+v", id, got)
		}
	}
}

// The pod of a run that has ended may be gone before a manager is there again: with its node, or because
// there were too many. Nobody would ever know the result.
func TestAJobThatHasLostItsPodHasNoResult(t *testing.T) {
	b := newBench(t)
	first, stop := context.WithCancel(t.Context())
	old := b.manager(first)
	result := b.begin(first, old, run.Attempt{Request: "r"}, "run-1")
	job := b.job(old)
	b.mustClaim(old, job, "pod-1")
	stop()
	b.end(result)
	job, err := b.client.BatchV1().Jobs("ops").Get(t.Context(), job.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True"}}
	if _, err := b.client.BatchV1().Jobs("ops").UpdateStatus(t.Context(), job, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	next := b.manager(t.Context())
	result = b.begin(t.Context(), next, run.Attempt{Request: "r", Interrupted: true}, "run-2")
	if got := b.end(result); got.Outcome.Verdict != content.Failed || !strings.Contains(got.Outcome.Message, "its pod is gone") {
		t.Errorf("got %+v", got)
	}
}

// Of two pods the one that has claimed the run counts, whatever becomes of the other.
func TestThePodThatHasTheRunCounts(t *testing.T) {
	b := newBench(t)
	x := b.manager(t.Context())
	result := b.begin(t.Context(), x, run.Attempt{Request: "r"}, "run-1")
	job := b.job(x)
	b.pod(job, "pod-1", "{phase: Running}")
	_, live := b.mustClaim(x, job, "pod-1")
	b.pod(job, "pod-2", "{phase: Failed, reason: Evicted}")
	scratchWait(b, func() *string {
		if shown := <-b.placed; shown == "pod pod-1|" {
			return &shown
		}
		return nil
	})
	if err := live.Result(t.Context(), success("run-1", 0)); err != nil {
		t.Fatal(err)
	}
	if got := b.end(result); got.Outcome.Verdict != content.Succeeded {
		t.Errorf("got %+v", got)
	}
}

func TestASweepRemovesTheJobsOfCRsThatAreGone(t *testing.T) {
	b := newBench(t)
	for name, operator := range map[string]string{"ensign-run-here": "ours", "ensign-run-gone": "ours", "ensign-run-other": "theirs"} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name, Labels: map[string]string{template.RunLabel: "true", template.OperatorLabel: operator}}}
		if _, err := b.client.BatchV1().Jobs("ops").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	x := b.manager(t.Context())
	if uids, err := x.UIDs(); len(uids) != 2 || err != nil {
		t.Errorf("got %v, %v", uids, err)
	}
	removed, err := x.Sweep(func(uid string) bool { return uid == "here" })
	if diff := cmp.Diff([]string{"gone"}, removed); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	left, err := b.client.BatchV1().Jobs("ops").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 2 {
		t.Errorf("left: %+v, %v", left, err)
	}
}

// A run that must know what an earlier one left waits for its end first. It goes on with what was asked
// for the same and has begun; what has not begun goes, for it has nothing to give it.
func TestWhatAnEarlierRunLeftIsEndedFirst(t *testing.T) {
	same, other := run.Attempt{Request: "r", Interrupted: true}, run.Attempt{Request: "other", Interrupted: true}
	for why, test := range map[string]struct {
		claimed, asks bool // asks: the pod claims again, because it never got an answer.
		attempt       run.Attempt
		result        bool
	}{
		"it was asked for the same":     {claimed: true, attempt: same, result: true},
		"it was asked for another":      {claimed: true, attempt: other},
		"its pod has not come":          {attempt: same},
		"its pod has no assignment":     {claimed: true, asks: true, attempt: same},
		"nor has the pod of another":    {claimed: true, asks: true, attempt: other},
		"the status shows no run of it": {claimed: true, attempt: run.Attempt{Request: "r"}},
	} {
		t.Run(why, func(t *testing.T) {
			b := newBench(t)
			first, stop := context.WithCancel(t.Context())
			old := b.manager(first)
			begun := b.begin(first, old, run.Attempt{Request: "r"}, "run-1")
			job := b.job(old)
			if test.claimed {
				b.mustClaim(old, job, "pod-1")
			}
			stop()
			b.end(begun)
			x := b.manager(t.Context())
			if !x.HasEarlier(t.Context(), "u", test.attempt) || x.HasEarlier(t.Context(), "v", test.attempt) {
				t.Error("it does not know what is left")
			}
			resumed := make(chan *run.Result, 1)
			go func() {
				resumed <- x.Resume(t.Context(), run.Spec{UID: "u", ID: "run-2", Kubeconfig: []byte(kubeconfig)}, test.attempt, func([]byte) {})
			}()
			switch {
			case test.asks:
				b.job(x)
				if _, err := b.claim(x, job, "pod-1"); !errors.Is(err, serve.ErrUnknown) {
					t.Errorf("a pod without an assignment gets %v", err)
				}
			case test.claimed && test.attempt.Interrupted:
				b.job(x)
				if _, err := b.claim(x, job, "pod-2"); !errors.Is(err, serve.ErrTaken) {
					t.Errorf("a second pod: %v", err)
				}
				live, ok := x.Live(job.UID, "run-1")
				if !ok {
					t.Fatal("the run is not live")
				}
				if err := live.Result(t.Context(), success("run-1", 0)); err != nil {
					t.Error(err)
				}
			}
			result := <-resumed
			if (result != nil) != test.result || result != nil && result.Outcome.Verdict != content.Succeeded {
				t.Errorf("got %+v", result)
			}
			if result == nil {
				b.noJob()
			} else if x.ResultStored("u"); x.HasEarlier(t.Context(), "u", run.Attempt{Request: "r"}) {
				t.Error("a run whose result is written is left")
			}
		})
	}
}

func TestNothingIsLeftWhereThereIsNoJob(t *testing.T) {
	x := newBench(t).manager(t.Context())
	if result := x.Resume(t.Context(), run.Spec{UID: "u", Kubeconfig: []byte(kubeconfig)}, run.Attempt{Interrupted: true}, nil); result != nil {
		t.Errorf("got %+v", result)
	}
}
