package executor

import (
	"context"
	"regexp"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// whyNoPod returns the last Event about a pod of the Job that could not be created; "" if there is
// none.
func (c *jobCluster) whyNoPod(ctx context.Context, job *batchv1.Job) string {
	if last := c.lastEvent(ctx, fields.Set{"involvedObject.uid": string(job.UID), "reason": "FailedCreate"}); last != nil {
		return steady(last.Message, job.Name)
	}
	return ""
}

// whyNotStarted returns the last warning about a pod that is on its node and has not started, such
// as a volume that is missing; "" if the last Event is not a warning.
func (c *jobCluster) whyNotStarted(ctx context.Context, pod *corev1.Pod) string {
	if last := c.lastEvent(ctx, fields.Set{"involvedObject.uid": string(pod.UID)}); last != nil && last.Type == corev1.EventTypeWarning {
		return steady(reasonAndMessage(last.Reason, last.Message), pod.Labels[batchv1.JobNameLabel])
	}
	return ""
}

// lastEvent returns the last Event with these fields; nil if there is none.
func (c *jobCluster) lastEvent(ctx context.Context, with fields.Set) *corev1.Event {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := c.client.CoreV1().Events(c.namespace).List(ctx, metav1.ListOptions{FieldSelector: with.AsSelector().String()})
	if err != nil {
		c.log.V(1).Info("the Events of a run could not be read", "error", err.Error())
		return nil
	}
	var last *corev1.Event
	for i := range list.Items {
		if e := &list.Items[i]; last == nil || !happened(e).Before(happened(last)) {
			last = e
		}
	}
	return last
}

// happened returns when an Event was seen last. The scheduler writes microseconds, and the kubelet whole
// seconds: it acts later, so that its Events count as the last ones of their second.
func happened(e *corev1.Event) time.Time {
	at := e.EventTime.Time
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	if last := e.LastTimestamp.Add(time.Second - 1); !e.LastTimestamp.IsZero() && last.After(at) {
		at = last
	}
	return at
}

// sandbox is the ID that a kubelet's container runtime makes up for each try to start a pod.
var sandbox = regexp.MustCompile(`[0-9a-f]{64}`)

// steady removes the parts from an Event's message that change with each try: the status would change
// with them.
func steady(message, job string) string {
	message = sandbox.ReplaceAllString(message, "…")
	if job == "" {
		return message
	}
	return regexp.MustCompile(regexp.QuoteMeta(job)+`-[a-z0-9]{5}\b`).ReplaceAllString(message, job+"-…")
}
