package executor

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/jobs/template"
	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/pkg/content"
)

func parsed[T any](t *testing.T, text string) *T {
	t.Helper()
	if text == "" {
		return nil
	}
	into := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
	return into
}

const aJob = "metadata: {name: ensign-run-u, namespace: ops}"

func terminatedPod(how string) string {
	return "metadata: {name: p, namespace: ops}\nstatus: {phase: Failed, containerStatuses: [{name: helper}, {name: manager, state: {terminated: {" + how + "}}}]}"
}

// What Kubernetes says of a run is what people read in the status, word for word.
func TestWhatKubernetesSaysOfARun(t *testing.T) {
	for why, test := range map[string]struct {
		job, pod string
		view     snapshot
		place    string
		waits    string
		over     string // a part of the failure's message; "" if the run is not over
		reason   content.Reason
	}{
		"nothing yet":                   {job: aJob},
		"a quota refuses the pod":       {job: aJob, view: snapshot{refused: `pods "x" is forbidden: exceeded quota: q`}, waits: "exceeded quota: q"},
		"suspended":                     {job: aJob + "\nspec: {suspend: true}", waits: "the Job is suspended"},
		"suspended by Kueue":            {job: "metadata: {labels: {kueue.x-k8s.io/queue-name: nightly}}\nspec: {suspend: true}", waits: `the Job is suspended until the queue "nightly" admits it`},
		"no node has room":              {job: aJob, pod: `status: {conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/2 nodes are available"}]}`, waits: "Unschedulable: 0/2 nodes are available"},
		"no image":                      {job: aJob, pod: `status: {containerStatuses: [{name: manager, state: {waiting: {reason: ErrImagePull, message: "not found"}}}]}`, waits: "ErrImagePull: not found"},
		"an image of another container": {job: aJob, pod: `status: {initContainerStatuses: [{name: init, state: {waiting: {reason: ImagePullBackOff}}}]}`, waits: "ImagePullBackOff"},
		"it starts as usual":            {job: aJob, pod: `status: {containerStatuses: [{name: manager, state: {waiting: {reason: ContainerCreating}}}]}`},
		"a pod without its label":       {job: aJob + "\nstatus: {active: 1, startTime: \"2026-01-01T00:00:00Z\"}", waits: "the pod of the Job has no label ensign.io/run"},
		"a pod that is not seen yet":    {job: aJob + "\nstatus: {active: 1, startTime: \"2026-01-01T00:00:55Z\"}"},
		"a pod that was refused before": {job: aJob + "\nstatus: {startTime: \"2026-01-01T00:00:00Z\"}", view: snapshot{refused: "exceeded quota: q"}, waits: "exceeded quota: q"},
		"a volume is missing":           {job: aJob, pod: "spec: {nodeName: n}\nstatus: {phase: Pending, containerStatuses: [{name: manager, state: {waiting: {reason: ContainerCreating}}}]}", view: snapshot{stalled: `FailedMount: configmap "ca" not found`}, waits: `FailedMount: configmap "ca" not found`},
		"a volume that has come":        {job: aJob, pod: "spec: {nodeName: n}\nstatus: {phase: Running, containerStatuses: [{name: manager, state: {running: {startedAt: \"2026-01-01T00:00:55Z\"}}}]}", view: snapshot{stalled: "FailedMount"}},
		"no image, by an Event too":     {job: aJob, pod: "spec: {nodeName: n}\nstatus: {phase: Pending, containerStatuses: [{name: manager, state: {waiting: {reason: ErrImagePull, message: \"not found\"}}}]}", view: snapshot{stalled: "Failed"}, waits: "ErrImagePull: not found"},
		"the agent is new":              {job: aJob, pod: `status: {containerStatuses: [{name: manager, state: {running: {startedAt: "2026-01-01T00:00:55Z"}}}]}`},
		"the agent reaches nobody":      {job: aJob, pod: "metadata: {name: p, namespace: ops}\n" + `status: {containerStatuses: [{name: manager, state: {running: {startedAt: "2026-01-01T00:00:00Z"}}}]}`, waits: "kubectl logs -n ops p"},
		"it runs":                       {job: aJob, pod: "metadata: {name: p}\nstatus: {phase: Running}", view: snapshot{claimed: true}, place: "pod p"},
		"a drained pod ends":            {job: aJob, pod: "metadata: {name: p, deletionTimestamp: \"2026-01-01T00:00:00Z\"}\n" + `status: {phase: Running, conditions: [{type: DisruptionTarget, status: "True", reason: EvictionByEvictionAPI, message: "Eviction API: evicting"}]}`, view: snapshot{claimed: true}, place: "pod p", waits: "its pod p is being deleted: EvictionByEvictionAPI: Eviction API: evicting"},
		"a pod that somebody deletes":   {job: aJob, pod: "metadata: {name: p, deletionTimestamp: \"2026-01-01T00:00:00Z\"}", waits: "its pod p is being deleted"},

		"evicted for its disk":        {job: aJob, pod: "status: {phase: Failed, reason: Evicted, message: \"Pod ephemeral local storage usage exceeds\"}", over: "Evicted: Pod ephemeral local storage usage exceeds"},
		"out of memory":               {job: aJob, pod: terminatedPod("reason: OOMKilled, exitCode: 137"), over: "OOMKilled: its container took more memory than it may; set a higher limit"},
		"it cannot start":             {job: aJob, pod: terminatedPod("reason: StartError, exitCode: 128, message: \"exec: no such file\""), over: "StartError: exec: no such file"},
		"an agent that fails":         {job: aJob, pod: terminatedPod("reason: Error, exitCode: 1, message: \"a secret of the content\""), over: "exit code 1; its log may say why: kubectl logs -n ops p"},
		"an init container fails":     {job: aJob, pod: "metadata: {name: p, namespace: ops}\nstatus: {phase: Failed, initContainerStatuses: [{name: first, state: {terminated: {exitCode: 0}}}, {name: clone, state: {terminated: {reason: Error, exitCode: 128}}}], containerStatuses: [{name: manager, state: {waiting: {reason: PodInitializing}}}]}", over: "its init container clone ended with exit code 128"},
		"an agent that says nothing":  {job: aJob, pod: terminatedPod("reason: Completed, exitCode: 0"), over: "exit code 0"},
		"a drained pod that is gone":  {job: aJob, pod: "metadata: {name: p}\n" + `status: {phase: Running, conditions: [{type: DisruptionTarget, status: "True", reason: EvictionByEvictionAPI, message: "Eviction API: evicting"}]}`, view: snapshot{claimed: true, gone: true}, place: "pod p", over: "EvictionByEvictionAPI: Eviction API: evicting"},
		"a deleted pod that is gone":  {job: aJob, pod: "metadata: {name: p}\nstatus: {phase: Running}", view: snapshot{gone: true}, over: "its pod p was deleted"},
		"the Job is gone":             {over: "the Job was deleted by somebody"},
		"the Job is gone, and a pod":  {pod: "metadata: {name: p}\nstatus: {phase: Running}", view: snapshot{gone: true}, over: "the Job was deleted by somebody"},
		"suspended while it ran":      {job: aJob + "\nspec: {suspend: true}", pod: "metadata: {name: p}\nstatus: {phase: Running}", view: snapshot{gone: true}, over: "the Job was suspended"},
		"the Job took too long":       {job: aJob + "\nstatus: {conditions: [{type: Failed, status: \"True\", reason: DeadlineExceeded, message: \"Job was active longer than specified deadline\"}]}", over: "the Job took over a minute longer than the watch's timeout", reason: content.ReasonTimeout},
		"too long, waiting":           {job: aJob + "\nstatus: {conditions: [{type: Failed, status: \"True\", reason: DeadlineExceeded}]}", view: snapshot{waited: "no volume"}, over: "until then it waited: no volume", reason: content.ReasonTimeout},
		"its pod goes first":          {job: aJob + "\nspec: {activeDeadlineSeconds: 60}\nstatus: {startTime: \"2026-01-01T00:00:00Z\"}", pod: "metadata: {name: p}\nstatus: {phase: Pending}", view: snapshot{gone: true, waited: "no volume"}, over: "until then it waited: no volume", reason: content.ReasonTimeout},
		"the Job lets it go":          {job: aJob + "\nstatus: {conditions: [{type: FailureTarget, status: \"True\", reason: DeadlineExceeded}]}", pod: "metadata: {name: p}\nstatus: {phase: Pending}", view: snapshot{gone: true}, over: "the Job took over a minute longer", reason: content.ReasonTimeout},
		"a pod deleted in time":       {job: aJob + "\nspec: {activeDeadlineSeconds: 90}\nstatus: {startTime: \"2026-01-01T00:00:00Z\"}", pod: "metadata: {name: p}\nstatus: {phase: Pending}", view: snapshot{gone: true}, over: "its pod p was deleted"},
		"drained when it was late":    {job: aJob + "\nspec: {activeDeadlineSeconds: 60}\nstatus: {startTime: \"2026-01-01T00:00:00Z\"}", pod: "metadata: {name: p}\n" + `status: {phase: Running, conditions: [{type: DisruptionTarget, status: "True", reason: EvictionByEvictionAPI, message: "Eviction API: evicting"}]}`, view: snapshot{gone: true}, over: "EvictionByEvictionAPI"},
		"deleted when it was late":    {job: aJob + "\nspec: {activeDeadlineSeconds: 60, suspend: true}\nstatus: {startTime: \"2026-01-01T00:00:00Z\"}", pod: "metadata: {name: p}\nstatus: {phase: Running}", view: snapshot{gone: true}, over: "the Job was suspended"},
		"the Job has failed":          {job: aJob + "\nstatus: {conditions: [{type: Failed, status: \"True\", reason: BackoffLimitExceeded, message: \"it has reached the limit\"}]}", over: "BackoffLimitExceeded: it has reached the limit"},
		"the Job is to fail":          {job: aJob + "\nstatus: {conditions: [{type: Failed, status: \"False\"}]}"},
		"too long, with a pod ending": {job: aJob + "\nstatus: {conditions: [{type: Failed, status: \"True\", reason: DeadlineExceeded}]}", pod: "metadata: {name: p, deletionTimestamp: \"2026-01-01T00:00:00Z\"}", waits: "is being deleted"},
	} {
		t.Run(why, func(t *testing.T) {
			v := test.view
			v.job, v.pod, v.now = parsed[batchv1.Job](t, test.job), parsed[corev1.Pod](t, test.pod), time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
			got := evaluate(v)
			if got.place != test.place || !strings.Contains(got.waitingFor, test.waits) || test.waits == "" && got.waitingFor != "" {
				t.Errorf("it executes in %q and waits for %q", got.place, got.waitingFor)
			}
			if got.over != (test.over != "") || !strings.Contains(got.failure.Message, test.over) {
				t.Fatalf("over: %v, by %+v", got.over, got.failure)
			}
			if test.reason == "" {
				test.reason = content.ReasonRunnerCrashed
			}
			if got.over && (got.failure.Verdict != content.Failed || got.failure.Reason != test.reason) {
				t.Errorf("got %+v", got.failure)
			}
			if strings.Contains(got.failure.Message, "secret") {
				t.Errorf("it shows what the content wrote: %q", got.failure.Message)
			}
		})
	}
}

// The last Event of a pod says whether it is stuck, in words that stay the same from one try to the next.
func TestWhatKeepsAPodFromStarting(t *testing.T) {
	at := func(second int) metav1.Time { return metav1.Date(2026, 1, 1, 0, 0, second, 0, time.UTC) }
	volume := func(second int) corev1.Event {
		return corev1.Event{Type: "Warning", Reason: "FailedMount", Message: `configmap "ca" not found`, LastTimestamp: at(second)}
	}
	scheduler := func(second int, kind, reason string) corev1.Event {
		return corev1.Event{Type: kind, Reason: reason, Message: "by the scheduler", EventTime: metav1.MicroTime(at(second))}
	}
	network := func(id string) corev1.Event {
		return corev1.Event{Type: "Warning", Reason: "FailedCreatePodSandBox", Message: `setup network for sandbox "` + strings.Repeat(id, 32) + `": no IP`, LastTimestamp: at(1)}
	}
	for why, test := range map[string]struct {
		events []corev1.Event
		want   string
	}{
		"nothing yet":                      {},
		"a volume is missing":              {events: []corev1.Event{scheduler(1, "Normal", "Scheduled"), volume(2)}, want: `FailedMount: configmap "ca" not found`},
		"a volume is missing at once":      {events: []corev1.Event{volume(1), {Type: "Normal", Reason: "Scheduled", EventTime: metav1.MicroTime{Time: at(1).Add(time.Second / 2)}}}, want: `FailedMount: configmap "ca" not found`},
		"a volume was missing":             {events: []corev1.Event{volume(2), {Type: "Normal", Reason: "Pulling", LastTimestamp: at(3)}}},
		"it did not fit on a node at once": {events: []corev1.Event{scheduler(1, "Warning", "FailedScheduling"), scheduler(2, "Normal", "Scheduled")}},
		"a warning that comes again":       {events: []corev1.Event{{Type: "Normal", LastTimestamp: at(2)}, {Type: "Warning", Reason: "R", Series: &corev1.EventSeries{LastObservedTime: metav1.MicroTime(at(3))}}}, want: "R"},
		"no network":                       {events: []corev1.Event{network("0a")}, want: `FailedCreatePodSandBox: setup network for sandbox "…": no IP`},
		"no network, at the next try":      {events: []corev1.Event{network("1b")}, want: `FailedCreatePodSandBox: setup network for sandbox "…": no IP`},
	} {
		t.Run(why, func(t *testing.T) {
			c := &jobCluster{client: fake.NewClientset(&corev1.EventList{Items: named(test.events)}), namespace: "ops", log: testr.New(t)}
			if got := c.whyNotStarted(t.Context(), &corev1.Pod{}); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// Each try to create a pod gives it another name, and the status need not change with it.
func TestAPodThatIsRefusedAgainIsRefusedInTheSameWords(t *testing.T) {
	job := parsed[batchv1.Job](t, aJob)
	for _, try := range []string{"x2vq8", "jmj2z"} {
		refused := []corev1.Event{{Reason: "FailedCreate", Message: `Pod "` + job.Name + "-" + try + `" is invalid: no-limit`}}
		c := &jobCluster{client: fake.NewClientset(&corev1.EventList{Items: named(refused)}), namespace: "ops", log: testr.New(t)}
		if got := c.whyNoPod(t.Context(), job); got != `Pod "ensign-run-u-…" is invalid: no-limit` {
			t.Errorf("got %q", got)
		}
	}
}

func named(events []corev1.Event) []corev1.Event {
	for i := range events {
		events[i].Namespace, events[i].Name = "ops", fmt.Sprint(i)
	}
	return events
}

func TestTheFateOfAJobThatIsThere(t *testing.T) {
	const finishedNow = "status: {conditions: [{type: Complete, status: \"True\"}]}"
	for why, test := range map[string]struct {
		annotations, rest string
		labels            string
		attempt           run.Attempt
		unmanaged         bool
		want              existingJob
	}{
		"live, and what is asked for":                {attempt: run.Attempt{Request: "r", Interrupted: true}, want: adopt},
		"finished, and its result is not written":    {rest: finishedNow, attempt: run.Attempt{Request: "r", Interrupted: true}, want: adopt},
		"finished, and its result is written":        {rest: finishedNow, attempt: run.Attempt{Request: "r"}, want: remove},
		"live, although the status shows no run":     {attempt: run.Attempt{Request: "r"}, want: remove},
		"its own, whose creation seemed to fail":     {attempt: run.Attempt{Request: "r"}, annotations: "ensign.io/run-id: mine", want: adopt},
		"claimed, for something else":                {attempt: run.Attempt{Request: "s", Interrupted: true}, annotations: "ensign.io/claimed-by: p", want: waitFor},
		"for something else, before it began":        {attempt: run.Attempt{Request: "s", Interrupted: true}, want: remove},
		"for something else, and finished":           {attempt: run.Attempt{Request: "s", Interrupted: true}, annotations: "ensign.io/claimed-by: p", rest: finishedNow, want: remove},
		"a finalizer does not wait":                  {attempt: run.Attempt{Request: "s", Interrupted: true, Finalizing: true}, annotations: "ensign.io/claimed-by: p", want: remove},
		"being deleted":                              {attempt: run.Attempt{Request: "r", Interrupted: true}, rest: "metadata: {deletionTimestamp: \"2026-01-01T00:00:00Z\"}", want: remove},
		"of another operator":                        {attempt: run.Attempt{Request: "r", Interrupted: true}, labels: "other", want: remove},
		"live, of a kind without managed status":     {attempt: run.Attempt{Request: "r"}, unmanaged: true, want: adopt},
		"finished, of a kind without managed status": {attempt: run.Attempt{Request: "r"}, unmanaged: true, rest: finishedNow, want: remove},
	} {
		t.Run(why, func(t *testing.T) {
			job := parsed[batchv1.Job](t, test.rest+"\n")
			job.Labels = map[string]string{template.OperatorLabel: "ours"}
			if test.labels != "" {
				job.Labels[template.OperatorLabel] = test.labels
			}
			job.Annotations = map[string]string{template.RequestAnnotation: "r", template.RunAnnotation: "earlier"}
			maps.Copy(job.Annotations, *parsed[map[string]string](t, test.annotations+"\n"))
			x := &Runner{Source: template.Source{Operator: "ours"}, ManageStatus: !test.unmanaged}
			if got := x.forExisting(job, test.attempt, "mine"); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
