package check

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// dropped adds the fields of CRs of the cluster that the project's definition does not have: those of a
// newer definition, before an older one is installed. Then the API server neither shows them
// nor keeps them at the next write.
func (p *Project) dropped(ctx context.Context, client dynamic.Interface, u *Unit, namespaces []string) error {
	crd := schema.Of(p.CRDs, u.Watch.GVK.GroupKind())
	validator, err := crd.Validator(u.Watch.GVK.Version)
	if err != nil || validator == nil {
		return nil //nolint:nilerr // The API server refuses such a CRD, which is a finding of its own.
	}
	if !crd.Namespaced || len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	at := source.Position{File: crd.File, Line: crd.Version(u.Watch.GVK.Version).Line, Column: 1}
	lost, err := fieldsLost(ctx, client.Resource(u.Watch.GVK.GroupVersion().WithResource(crd.Plural)), validator, namespaces)
	switch {
	case apierrors.IsNotFound(err): // It is not served, which is a finding of its own.
	case apierrors.IsForbidden(err):
		p.add(finding{
			"dropped-field", report.Info, at, "whether this CRD drops fields of resources in the cluster is not known: " + err.Error(),
			"the API server does not keep fields that a CRD does not have", "give the account of the kubeconfig the right to list the kind",
		})
	case err != nil:
		return fmt.Errorf("list the %s objects: %w", u.Watch.GVK.Kind, err)
	}
	for _, path := range slices.Sorted(maps.Keys(lost)) {
		severity, names := report.Error, lost[path]
		if strings.HasPrefix(path, "status.") {
			severity = report.Warning // The next run may write it again.
		}
		p.add(finding{
			"dropped-field", severity, at, fmt.Sprintf("the %s %s in the cluster %s %s, which this CRD does not have", u.Watch.GVK.Kind, few(names), has(names), path),
			"the API server drops the field when this CRD is installed, and its value is lost at the next write of the resource",
			"add the field to the CRD, or leave the cluster's CRD as it is while an older operator runs, or save the resources first: kubectl get -o yaml",
		})
	}
	return nil
}

// fieldsLost returns the CRs by the path of a field that the schema does not have.
func fieldsLost(ctx context.Context, resources dynamic.NamespaceableResourceInterface, validator *schema.Validator, namespaces []string) (map[string][]string, error) {
	lost := map[string][]string{}
	for _, namespace := range namespaces {
		err := eachOf(ctx, resources.Namespace(namespace), func(name string, object map[string]any) {
			for _, field := range validator.Dropped(object) {
				path := anyElement.ReplaceAllString(field.Path, "[*]")
				if names := lost[path]; !byManager(path) && (len(names) == 0 || names[len(names)-1] != name) {
					lost[path] = append(names, name)
				}
			}
		})
		if err != nil {
			return lost, err
		}
	}
	return lost, nil
}

var anyElement = regexp.MustCompile(`\[\d+\]`)

// byManager reports whether the manager itself writes the field with each run.
func byManager(path string) bool {
	return slices.Contains([]string{"status.conditions", "status.observedGeneration", "status.contentDigest", "status.contentRun", "status.reconcileRequestedAt"}, path)
}

// eachOf calls visit with each object of a resource, page by page.
func eachOf(ctx context.Context, resource dynamic.ResourceInterface, visit func(name string, object map[string]any)) error {
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return resource.List(ctx, o) })
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		if item, ok := object.(*unstructured.Unstructured); ok {
			visit(strings.TrimPrefix(item.GetNamespace()+"/"+item.GetName(), "/"), item.Object)
		}
		return nil
	})
}

func has(names []string) string {
	if len(names) == 1 {
		return "has"
	}
	return "have"
}
