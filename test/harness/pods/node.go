package pods

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// NodeName is that of the node.
const NodeName = "processes"

// pause is the time between two looks at something that no watch tells.
const pause = 50 * time.Millisecond

// Options say how pods become processes.
type Options struct {
	// Dir holds the files of pods: logs, tokens, temporary files. Short, for sockets.
	Dir string
	// Programs are the paths of commands here, by the last part of the command in the pod.
	Programs map[string]string
	// Env is added to the environment of each container, with its paths replaced as those of the pod.
	Env []string
}

// Node is a node that runs pods. It must be stopped.
type Node struct {
	options Options
	k8s     kubernetes.Interface
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu sync.Mutex
	// at has the pods of the node by their UID.
	at map[types.UID]*pod
	// held keeps new pods from starting, with what their status says of that.
	held *corev1.ContainerStateWaiting
}

// Placement is what the spec of a pod has, in YAML for a flow mapping, to come to the node.
const Placement = `nodeSelector: {kubernetes.io/hostname: ` + NodeName + `}, tolerations: [{key: ` + NodeName + `, operator: Exists}]`

// Start makes the node and runs what it gets until Stop. Its taint keeps all pods away but those
// with Placement. The cluster must leave nodes to others: see controlplane.Options.LeaveNodes.
func Start(ctx context.Context, config *rest.Config, o Options) (*Node, error) {
	k8s, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	n := &Node{options: o, k8s: k8s, at: map[types.UID]*pod{}}
	if err := n.register(ctx); err != nil {
		return nil, fmt.Errorf("make the node %s: %w", NodeName, err)
	}
	ctx, n.cancel = context.WithCancel(context.WithoutCancel(ctx))
	lists := cache.NewListWatchFromClient(k8s.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, fields.OneTermEqualSelector("spec.nodeName", NodeName))
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: lists, ObjectType: &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { n.see(ctx, object) },
			UpdateFunc: func(_, object any) { n.see(ctx, object) },
			DeleteFunc: func(object any) { n.lost(object) },
		},
	})
	n.running.Go(func() { informer.RunWithContext(ctx) })
	return n, nil
}

// Stop kills what runs, and waits for its end.
func (n *Node) Stop() {
	n.cancel()
	n.mu.Lock()
	for _, p := range n.at {
		p.kill()
	}
	n.mu.Unlock()
	n.running.Wait()
}

func (n *Node) register(ctx context.Context) error {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("1000"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	}
	now := metav1.Now()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: NodeName, Labels: map[string]string{corev1.LabelHostname: NodeName, corev1.LabelOSStable: "linux"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: NodeName, Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Allocatable: room, Capacity: room, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now},
		}},
	}
	if _, err := n.k8s.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, pause, true, func(ctx context.Context) (bool, error) {
		node, err := n.k8s.CoreV1().Nodes().Get(ctx, NodeName, metav1.GetOptions{})
		return err == nil && len(node.Spec.Taints) == 1, err // Kubernetes has added others, until it is ready.
	})
}

// see begins to run a pod that is new, and to end one that is being deleted.
func (n *Node) see(ctx context.Context, object any) {
	seen, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	p, known := n.at[seen.UID]
	if !known {
		p = &pod{node: n, seen: seen.DeepCopy(), dir: filepath.Join(n.options.Dir, seen.Name), ended: make(chan struct{}), deleted: make(chan struct{})}
		n.at[seen.UID] = p
		n.running.Go(func() { p.live(ctx) })
	}
	if seen.DeletionTimestamp != nil {
		p.deleteOnce.Do(func() { close(p.deleted) })
	}
}

// lost ends the processes of a pod that somebody has deleted by force.
func (n *Node) lost(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	seen, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if p, known := n.at[seen.UID]; known {
		p.kill()
		delete(n.at, seen.UID)
	}
}

// Hold keeps pods that come from now on from starting, and says why in their status, as with an
// image that cannot be pulled; "" lets them start again.
func (n *Node) Hold(reason, message string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held = nil
	if reason != "" {
		n.held = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
	}
}

func (n *Node) holds() *corev1.ContainerStateWaiting {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.held
}

// Evict ends a pod as a kubelet does whose node runs out of something.
func (n *Node) Evict(name, message string) error {
	return n.end(name, func(p *pod) { p.evicted = message })
}

// OOM kills a container as the kernel does at the limit of its memory.
func (n *Node) OOM(name string) error { return n.end(name, func(p *pod) { p.oom = true }) }

// Kill kills all processes of a pod.
func (n *Node) Kill(name string) error { return n.end(name, func(*pod) {}) }

func (n *Node) end(name string, order func(*pod)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.at {
		if p.seen.Name == name {
			order(p)
			p.kill()
			return nil
		}
	}
	return fmt.Errorf("no pod %s is here", name)
}

// Names are those of the pods that are here, in order.
func (n *Node) Names() (names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.at {
		names = append(names, p.seen.Name)
	}
	slices.Sort(names)
	return names
}

// Log is what the container of a pod has printed, also when the pod has gone.
func (n *Node) Log(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(n.options.Dir, name, "log"))
	return string(text), err
}

// update changes the status of a pod. One that has gone has none.
func (n *Node) update(ctx context.Context, seen *corev1.Pod, change func(*corev1.PodStatus)) error {
	return wait.PollUntilContextCancel(ctx, pause, true, func(ctx context.Context) (bool, error) {
		current, err := n.k8s.CoreV1().Pods(seen.Namespace).Get(ctx, seen.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || err == nil && current.UID != seen.UID:
			return true, nil
		case err != nil:
			return false, nil //nolint:nilerr // The API server may be away for a while.
		}
		change(&current.Status)
		_, err = n.k8s.CoreV1().Pods(seen.Namespace).UpdateStatus(ctx, current, metav1.UpdateOptions{})
		return err == nil || apierrors.IsNotFound(err), nil
	})
}
