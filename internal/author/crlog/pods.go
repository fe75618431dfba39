package crlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// ManagerContainer is the name of the manager's container; a pod that has none of this name is
// read by its annotation, or its first container.
const ManagerContainer = "manager"

const defaultContainer = "kubectl.kubernetes.io/default-container"

// Pods are the pods of managers.
type Pods struct {
	Client kubernetes.Interface
	// Namespace is theirs; "" is any.
	Namespace string
	// Selector selects them by their labels.
	Selector string
	// Since leaves out older lines; 0 leaves out nothing.
	Since time.Duration
	// Previous reads the former container's log of pods whose manager was started again.
	Previous bool
	// Note gets further messages for the reader. It may be called concurrently.
	Note func(text string)
}

// ErrNoPods is returned if there is no pod of a manager.
var ErrNoPods = errors.New("no pod of a manager was found")

// ErrNoPrevious is returned if no pod has a container before its present one.
var ErrNoPrevious = errors.New("no container of the manager has restarted, so there is no previous log; leave --previous out")

// Read prints the object's lines of all pods, one pod after the other.
func (p Pods) Read(ctx context.Context, object Object, to *Printer) error {
	list, err := p.Client.CoreV1().Pods(p.Namespace).List(ctx, metav1.ListOptions{LabelSelector: p.Selector})
	if err != nil {
		return p.explained(err)
	}
	if len(list.Items) == 0 {
		return ErrNoPods
	}
	if p.Previous {
		list.Items = slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return statusOf(&pod).LastTerminationState.Terminated == nil })
		if len(list.Items) == 0 {
			return ErrNoPrevious
		}
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	var errs []error
	for i := range list.Items {
		errs = append(errs, p.copy(ctx, &list.Items[i], p.options(&list.Items[i], false), object, to))
	}
	return errors.Join(errs...)
}

// Follow prints the object's lines of all pods as they come, also of containers that start
// later, until the context ends.
func (p Pods) Follow(ctx context.Context, object Object, to *Printer) error {
	pods := cache.NewFilteredListWatchFromClient(p.Client.CoreV1().RESTClient(), "pods", p.Namespace, func(o *metav1.ListOptions) { o.LabelSelector = p.Selector })
	// The watch would retry forever without a message.
	if _, err := pods.ListWithContext(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return p.explained(err)
	}
	var streams sync.WaitGroup
	defer streams.Wait()
	known := map[string]bool{}
	started := func(event watch.Event) (bool, error) {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type == watch.Deleted {
			return false, nil
		}
		if id := instanceOf(pod); id != "" && !known[id] {
			known[id] = true
			streams.Go(func() { p.follow(ctx, pod, object, to) })
		}
		return false, nil
	}
	_, _ = watchtools.UntilWithSync(ctx, pods, &corev1.Pod{}, nil, started) // It ends with the context.
	return nil
}

// follow prints the lines of one instance of a container. If the connection breaks, it goes on
// from there.
func (p Pods) follow(ctx context.Context, pod *corev1.Pod, object Object, to *Printer) {
	options := p.options(pod, true)
	for {
		err := p.copy(ctx, pod, options, object, to)
		options.SinceSeconds, options.SinceTime = nil, new(metav1.Now())
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		now, gone := p.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if gone != nil || instanceOf(now) != instanceOf(pod) || !isRunning(now) {
			return
		}
		if err != nil {
			p.Note(err.Error())
		}
	}
}

// instanceOf identifies the instance of the manager's container that has a log; "" is none.
func instanceOf(pod *corev1.Pod) string {
	s := statusOf(pod)
	if s.State.Running == nil && s.State.Terminated == nil {
		return ""
	}
	return fmt.Sprintf("%s/%d", pod.UID, s.RestartCount)
}

func isRunning(pod *corev1.Pod) bool { return statusOf(pod).State.Running != nil }

func statusOf(pod *corev1.Pod) corev1.ContainerStatus {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == containerOf(pod) {
			return s
		}
	}
	return corev1.ContainerStatus{}
}

func containerOf(pod *corev1.Pod) string {
	names := make([]string, len(pod.Spec.Containers))
	for i, c := range pod.Spec.Containers {
		names[i] = c.Name
	}
	for _, name := range []string{ManagerContainer, pod.Annotations[defaultContainer]} {
		if slices.Contains(names, name) {
			return name
		}
	}
	return names[0] // The API server takes no pod without one.
}

func (p Pods) options(pod *corev1.Pod, follow bool) *corev1.PodLogOptions {
	options := &corev1.PodLogOptions{Container: containerOf(pod), Follow: follow, Previous: p.Previous}
	if p.Since > 0 {
		options.SinceSeconds = new(int64(max(1, p.Since.Seconds())))
	}
	return options
}

func (p Pods) copy(ctx context.Context, pod *corev1.Pod, options *corev1.PodLogOptions, object Object, to *Printer) error {
	stream, err := p.Client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		return fmt.Errorf("read the log of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	defer func() { _ = stream.Close() }() // It was only read.
	if err := to.Copy(object, stream); err != nil {
		return fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

func (p Pods) explained(err error) error {
	if apierrors.IsForbidden(err) && p.Namespace == "" {
		return fmt.Errorf("look for the manager's pods in all namespaces: %w; --manager-namespace names theirs", err)
	}
	return fmt.Errorf("look for the manager's pods: %w", err)
}
