package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	nodeName     = "fake-node"
	pollInterval = 50 * time.Millisecond
)

// bootstrap makes a fresh API server into a cluster that can be used.
type bootstrap struct {
	client kubernetes.Interface
	class  *storagev1.StorageClass
}

func newBootstrap(config *rest.Config, stages string) (*bootstrap, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	class, err := storageClass(stages)
	if err != nil {
		return nil, err
	}
	return &bootstrap{client: client, class: class}, nil
}

// storageClass reads the default class from kwok's stages, which it belongs to:
// they act on the claims of this class alone.
func storageClass(path string) (*storagev1.StorageClass, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open kwok's stages: %w", err)
	}
	defer func() { _ = file.Close() }()
	documents := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		class := &storagev1.StorageClass{}
		switch err := documents.Decode(class); {
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%q holds no StorageClass", path)
		case err != nil:
			return nil, fmt.Errorf("read %q: %w", path, err)
		case class.Kind == "StorageClass":
			return class, nil
		}
	}
}

// answers waits until the API server is ready to serve.
func (b *bootstrap) answers(ctx context.Context) error {
	return waitFor(ctx, "the API server is ready", func(ctx context.Context) error {
		return b.client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// furnish creates what a cluster comes with and waits for what the controllers
// make of it. In a data directory that was used before, some of it exists.
func (b *bootstrap) furnish(ctx context.Context) error {
	_, err := b.client.CoreV1().Nodes().Create(ctx, node(), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the node: %w", causeOf(ctx, err))
	}
	_, err = b.client.StorageV1().StorageClasses().Create(ctx, b.class, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the default storage class: %w", causeOf(ctx, err))
	}
	if err := waitFor(ctx, "the default service account exists", func(ctx context.Context) error {
		_, err := b.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	}); err != nil {
		return err
	}
	return waitFor(ctx, "the node takes pods", b.nodeTakesPods)
}

// nodeTakesPods also waits for the taints to go, without which a pod that is
// created at once would be unschedulable for some seconds.
func (b *bootstrap) nodeTakesPods(ctx context.Context) error {
	node, err := b.client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			if len(node.Spec.Taints) > 0 {
				return fmt.Errorf("node %s has taints %v", nodeName, node.Spec.Taints)
			}
			return nil
		}
	}
	return fmt.Errorf("node %s is not Ready", nodeName)
}

func node() *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("64"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("1000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        nodeName,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{
				corev1.LabelHostname:   nodeName,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: runtime.GOARCH,
			},
		},
		Status: corev1.NodeStatus{Allocatable: room, Capacity: room},
	}
}

// waitFor polls until the check holds. Its error says what was waited for, what
// the check said last, and why the waiting ended.
func waitFor(ctx context.Context, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if err != nil && ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err == nil {
		return nil
	}
	err = causeOf(ctx, err)
	if last != nil {
		err = fmt.Errorf("%w (last: %w)", err, last)
	}
	return fmt.Errorf("wait until %s: %w", what, err)
}

// causeOf prefers why the context ended to the error that its end led to.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
