package helmclient

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/resource"
)

// maxProblems is how many pods of an object are described.
const maxProblems = 3

// podProblems describes why the pods of an object wait, and how their containers ended; "" if none
// waits, or they cannot be read. It only adds to an error.
func (c *Client) podProblems(info *resource.Info) string {
	live, err := c.get(info)
	if err != nil || live == nil {
		return ""
	}
	options, ok := podsOf(live)
	if !ok {
		return ""
	}
	pods, err := c.GetPodList(live.GetNamespace(), options)
	if err != nil {
		return ""
	}
	var all []string
	for i := range pods.Items {
		if text := problemsOf(&pods.Items[i]); text != "" && len(all) < maxProblems {
			all = append(all, "Pod "+pods.Items[i].Namespace+"/"+pods.Items[i].Name+": "+text)
		}
	}
	return strings.Join(all, "; ")
}

// podsOf returns the selector of the pods of an object.
func podsOf(object *unstructured.Unstructured) (metav1.ListOptions, bool) {
	if object.GetKind() == "Pod" {
		return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", object.GetName()).String()}, true
	}
	if _, has, _ := unstructured.NestedMap(object.Object, "spec", "template", "spec"); !has {
		return metav1.ListOptions{}, false
	}
	selector, _, _ := unstructured.NestedStringMap(object.Object, "spec", "selector", "matchLabels")
	return metav1.ListOptions{LabelSelector: labels.SelectorFromSet(selector).String()}, len(selector) > 0
}

// problemsOf describes why a pod waits; "" if it does not.
func problemsOf(pod *corev1.Pod) string {
	var all []string
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			all = append(all, condition.Reason+": "+condition.Message)
		}
	}
	statuses := append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) //nolint:gocritic // A new list.
	for i := range statuses {
		one := &statuses[i]
		switch ended := lastEnd(one); {
		case one.State.Waiting != nil && one.State.Waiting.Reason != "PodInitializing" && one.State.Waiting.Reason != "ContainerCreating":
			all = append(all, strings.TrimSuffix(fmt.Sprintf("container %s waits: %s: %s", one.Name, one.State.Waiting.Reason, one.State.Waiting.Message), ": "))
		case ended != nil && ended.ExitCode != 0:
			all = append(all, fmt.Sprintf("container %s ended with exit code %d: %s", one.Name, ended.ExitCode, ended.Reason))
		case one.State.Running != nil && !one.Ready:
			all = append(all, fmt.Sprintf("container %s runs and is not ready", one.Name))
		}
	}
	return strings.Join(all, ", ")
}

// lastEnd returns how a container ended last; nil if it runs for the first time.
func lastEnd(status *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if status.State.Terminated != nil {
		return status.State.Terminated
	}
	return status.LastTerminationState.Terminated
}
