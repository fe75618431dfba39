package executor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/ensign-operator/ensign/internal/jobs/template"
	"github.com/ensign-operator/ensign/pkg/content"
)

// queueLabel names the queue of Kueue that admits a Job.
const queueLabel = "kueue.x-k8s.io/queue-name"

// silentFor is how long the agent of a running pod may take to claim its run, and a pod to be seen, before
// progress says so.
const silentFor = 10 * time.Second

// clockSkew is how far the clock of the Job controller may be ahead of this one.
const clockSkew = 5 * time.Second

// snapshot is the state of a run in Kubernetes.
type snapshot struct {
	// job is nil if it is gone.
	job *batchv1.Job
	// pod is the one that has claimed the run, or else the newest; nil if there is none. gone is true
	// if it was there, and is shown as it was last.
	pod  *corev1.Pod
	gone bool
	// claimed is true if the pod has claimed the run.
	claimed bool
	// refused is why the last pod could not be created; "" if that is not known.
	refused string
	// stalled is the last warning Event of the pod, if that has not started; "" if nothing is
	// known.
	stalled string
	// waited is the reason why the run waited until its Job or pod began to end; "" if there was none.
	waited string
	// lost is true if the Job has ended and surely has no pod any more.
	lost bool
	now  time.Time
}

// podState is the meaning of a snapshot.
type podState struct {
	// place is where the run executes, and waitingFor why it waits, in words for people.
	place, waitingFor string
	// over is true if nothing of the run executes any more. Then message is the termination message
	// of its container, and failure the run's outcome if the message is not a result.
	over    bool
	message string
	failure content.Outcome
}

func evaluate(v snapshot) podState {
	s := podState{}
	if v.pod != nil && v.claimed {
		s.place = "pod " + v.pod.Name
	}
	ended := v.pod != nil && terminated(v.pod) != nil
	jobFailed := condition(v.job, batchv1.JobFailed)
	switch {
	case v.pod != nil && (ended || v.gone || v.pod.Status.Phase == corev1.PodFailed || v.pod.Status.Phase == corev1.PodSucceeded),
		v.pod == nil && (v.job == nil || jobFailed != nil || v.lost):
		s.over, s.failure = true, failureOf(v, jobFailed)
		if ended {
			s.message = terminated(v.pod).Message
		}
	default:
		s.waitingFor = waitsFor(v)
	}
	return s
}

// failureOf returns the outcome of a run that has ended without a result.
func failureOf(v snapshot, failed *batchv1.JobCondition) content.Outcome {
	if tookTooLong(v) {
		why := "the Job took over a minute longer than the watch's timeout"
		if v.waited != "" {
			why += "; until then it waited: " + v.waited
		}
		return content.Outcome{Verdict: content.Failed, Reason: content.ReasonTimeout, Message: why}
	}
	why := whyEnded(v)
	if why == "" && failed != nil {
		why = reasonAndMessage(failed.Reason, failed.Message)
	}
	if why == "" {
		why = "its pod is gone, and the result with it"
	}
	return content.Outcome{Verdict: content.Failed, Reason: content.ReasonRunnerCrashed, Message: "the run in a Job ended without a result: " + why}
}

// byOthers returns the change of the Job that ends its pod, if another client than the manager made
// it; "" if there is none.
func byOthers(job *batchv1.Job) string {
	switch {
	case job == nil || job.DeletionTimestamp != nil:
		return "the Job was deleted by somebody"
	case suspended(job):
		return "the Job was suspended, for example by a queue that needs room for other Jobs, and its pod was deleted"
	}
	return ""
}

// tookTooLong reports whether the Job's deadline has ended the run. The pod may go before the Job says so.
func tookTooLong(v snapshot) bool {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobFailed, batchv1.JobFailureTarget} {
		if c := condition(v.job, kind); c != nil && c.Reason == batchv1.JobReasonDeadlineExceeded {
			return true
		}
	}
	if v.job == nil || v.job.Spec.ActiveDeadlineSeconds == nil || v.job.Status.StartTime == nil || byOthers(v.job) != "" {
		return false
	}
	deleted := v.pod == nil || v.gone || v.pod.DeletionTimestamp != nil
	disrupted := v.pod != nil && podCondition(v.pod, corev1.DisruptionTarget, corev1.ConditionTrue) != nil
	deadline := v.job.Status.StartTime.Add(time.Duration(*v.job.Spec.ActiveDeadlineSeconds) * time.Second)
	return deleted && !disrupted && v.now.After(deadline.Add(-clockSkew))
}

// isEnding reports whether the Job is gone, it or its pod is being deleted, or it is failing, so that
// Kubernetes ends its pod.
func isEnding(v snapshot) bool {
	return v.job == nil || v.job.DeletionTimestamp != nil || v.pod != nil && v.pod.DeletionTimestamp != nil || condition(v.job, batchv1.JobFailureTarget) != nil
}

// whyEnded returns Kubernetes' reason for the pod's end; "" if it gives none.
func whyEnded(v snapshot) string {
	if v.pod == nil {
		return byOthers(v.job)
	}
	c, disrupted := terminated(v.pod), podCondition(v.pod, corev1.DisruptionTarget, corev1.ConditionTrue)
	switch {
	case v.pod.Status.Reason != "": // Evicted, NodeLost, UnexpectedAdmissionError
		return reasonAndMessage(v.pod.Status.Reason, v.pod.Status.Message)
	case disrupted != nil:
		return reasonAndMessage(disrupted.Reason, disrupted.Message)
	case c != nil && c.Reason == "OOMKilled":
		return "OOMKilled: its container took more memory than it may; set a higher limit for the container manager in job.podTemplate"
	case c != nil && c.Reason != "Error" && c.Reason != "Completed":
		return reasonAndMessage(c.Reason, c.Message)
	case byOthers(v.job) != "":
		return byOthers(v.job)
	case v.gone || v.pod.DeletionTimestamp != nil:
		return "its pod " + v.pod.Name + " was deleted"
	case c != nil:
		return fmt.Sprintf("its container ended with exit code %d; its log may say why: kubectl logs -n %s %s", c.ExitCode, v.pod.Namespace, v.pod.Name)
	}
	return failedBefore(v.pod)
}

// failedBefore returns which init container kept the run from beginning; "" if none did.
func failedBefore(pod *corev1.Pod) string {
	for i := range pod.Status.InitContainerStatuses {
		c := &pod.Status.InitContainerStatuses[i]
		if ended := c.State.Terminated; ended != nil && ended.ExitCode != 0 {
			return fmt.Sprintf("its init container %s ended with exit code %d (%s)", c.Name, ended.ExitCode, ended.Reason)
		}
	}
	return ""
}

// waitsFor returns the reason why a run waits; "" if it executes, or no reason is known.
func waitsFor(v snapshot) string {
	switch pod := v.pod; {
	case v.job != nil && v.job.DeletionTimestamp != nil:
		return "the Job is being deleted"
	case v.job != nil && suspended(v.job):
		if queue := v.job.Labels[queueLabel]; queue != "" {
			return fmt.Sprintf("the Job is suspended until the queue %q admits it", queue)
		}
		return "the Job is suspended"
	case pod == nil && lacksLabel(v):
		return fmt.Sprintf("the pod of the Job has no label %s, and gets no run without it; does an admission webhook remove it?", template.RunLabel)
	case pod == nil:
		return v.refused
	case pod.DeletionTimestamp != nil:
		why := whyEnded(v)
		return strings.TrimSuffix("its pod "+pod.Name+" is being deleted: "+why, ": its pod "+pod.Name+" was deleted")
	case v.claimed:
		return ""
	default:
		return startsAfter(v)
	}
}

// lacksLabel reports whether the Job has had a pod for a while that the manager does not see.
func lacksLabel(v snapshot) bool {
	return v.job != nil && v.job.Status.Active > 0 && v.job.Status.StartTime != nil && v.now.Sub(v.job.Status.StartTime.Time) > silentFor
}

// startsAfter returns the obstacle that keeps the pod from claiming its run.
func startsAfter(v snapshot) string {
	pod := v.pod
	if c := podCondition(pod, corev1.PodScheduled, corev1.ConditionFalse); c != nil {
		return reasonAndMessage(c.Reason, c.Message)
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting, running := c.State.Waiting, c.State.Running
		switch {
		case waiting != nil && waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing":
			return reasonAndMessage(waiting.Reason, waiting.Message)
		case c.Name == template.Container && running != nil && v.now.Sub(running.StartedAt.Time) > silentFor:
			return fmt.Sprintf("the agent in pod %s has not reached the operator yet; its log says why: kubectl logs -n %s %s", pod.Name, pod.Namespace, pod.Name)
		}
	}
	if isStarting(pod) {
		return v.stalled
	}
	return ""
}

// isStarting reports whether the pod is on a node, and its containers have not all started.
func isStarting(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending
}

// reasonAndMessage joins a reason and a message as Kubernetes' tools do.
func reasonAndMessage(reason, message string) string {
	if message == "" {
		return reason
	}
	return reason + ": " + message
}

// terminated returns how the container of the run ended; nil if it did not.
func terminated(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	for i := range pod.Status.ContainerStatuses {
		if c := &pod.Status.ContainerStatuses[i]; c.Name == template.Container {
			return c.State.Terminated
		}
	}
	return nil
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == kind && c.Status == status {
			return c
		}
	}
	return nil
}

// condition returns a condition of the Job that is true.
func condition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	if job == nil {
		return nil
	}
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func suspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

// finished reports whether the Job starts no pod any more.
func finished(job *batchv1.Job) bool {
	return condition(job, batchv1.JobFailed) != nil || condition(job, batchv1.JobComplete) != nil
}
