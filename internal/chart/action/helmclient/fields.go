package helmclient

import (
	"fmt"

	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/chart/fields"
)

// leaveFields gives the targets the live values of the fields that are not the chart's.
func (c *Client) leaveFields(originals, targets kube.ResourceList) error {
	var all []*unstructured.Unstructured
	for _, target := range targets {
		if object, ok := target.Object.(*unstructured.Unstructured); ok {
			all = append(all, object)
		}
	}
	scaled := fields.ScaledBy(all, c.Namespace)
	for _, target := range targets {
		object, ok := target.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		before := &unstructured.Unstructured{} // It has said nothing.
		if original := originals.Get(target); original != nil {
			before, _ = original.Object.(*unstructured.Unstructured)
		}
		filled := fields.ByCluster(object, scaled, c.Namespace)
		if len(filled) == 0 && !c.Ignored.Any(object) {
			continue
		}
		info := *target
		if err := info.Get(); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return fmt.Errorf("read the fields of %s that are not the chart's: %w", nameOf(target), err)
		}
		live, ok := info.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		for _, pointer := range filled {
			fields.Keep(object.Object, live.Object, pointer)
		}
		c.Ignored.KeepIgnored(object, live, before)
	}
	return nil
}
