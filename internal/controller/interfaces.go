package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/controller/slots"
)

// Access opens the Kubernetes API to the runs of a CR.
type Access interface {
	// Grant returns a kubeconfig that acts for the CR until revoke is called. What is written
	// with it gets the labels.
	Grant(cr *unstructured.Unstructured, labels map[string]string) (kubeconfig []byte, revoke func(), err error)
}

// Slots limits how many runs are live in all watches together.
type Slots interface {
	// Acquire waits for a slot; release gives it back.
	Acquire(ctx context.Context, watch string, priority slots.Priority) (release func(), err error)
}
