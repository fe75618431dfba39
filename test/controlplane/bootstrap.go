package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	nodeName     = "fake-node"
	fakeNode     = "kwok.x-k8s.io/node=fake"
	stagesFile   = "stages.yaml"
	pollInterval = 50 * time.Millisecond
)

// furnish creates what a cluster comes with and waits for what the controllers
// make of it. In a data directory that was used before, some of it exists.
func (c *Cluster) furnish(ctx context.Context, k8s kubernetes.Interface) error {
	class, err := storageClass(filepath.Join(c.bin, stagesFile))
	if err != nil {
		return err
	}
	_, err = k8s.CoreV1().Nodes().Create(ctx, node(), metav1.CreateOptions{})
	_, classErr := k8s.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
	if err := errors.Join(client.IgnoreAlreadyExists(err), client.IgnoreAlreadyExists(classErr)); err != nil {
		return fmt.Errorf("create the node and the default storage class: %w", errors.Join(err, context.Cause(ctx)))
	}
	if err := waitFor(ctx, "the default service account exists", func(ctx context.Context) error {
		_, err := k8s.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	}); err != nil {
		return err
	}
	return waitFor(ctx, "the node takes pods", func(ctx context.Context) error { return nodeTakesPods(ctx, k8s) })
}

// storageClass reads the default class from kwok's stages, which it belongs to:
// they act on the claims of this class alone.
func storageClass(path string) (*storagev1.StorageClass, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read kwok's stages: %w", err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		class := &storagev1.StorageClass{}
		if err := yaml.Unmarshal([]byte(document), class); err != nil {
			return nil, fmt.Errorf("read %q: %w", path, err)
		}
		if class.Kind == "StorageClass" {
			return class, nil
		}
	}
	return nil, fmt.Errorf("%q holds no StorageClass", path)
}

// nodeTakesPods also waits for the taints to go, without which a pod that is
// created at once would be unschedulable for some seconds.
func nodeTakesPods(ctx context.Context, k8s kubernetes.Interface) error {
	node, err := k8s.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
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

// waitFor polls until the check holds. Its error says what was waited for, why the
// waiting ended, and what the check said last before that.
func waitFor(ctx context.Context, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s: %w", what, errors.Join(context.Cause(ctx), last))
	}
	return nil
}
