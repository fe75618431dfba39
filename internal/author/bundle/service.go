package bundle

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// service has the parts of a ClusterServiceVersion. The Lifecycle Manager makes other objects of
// those that it takes: it creates the account, the roles and their bindings itself.
type service struct {
	deployments, owned []any
	// kinds are those that are owned, and image is the operator's.
	kinds []string
	image string
	// rules are those of each account, by whether they count in all namespaces.
	rules map[bool]map[string][]any

	roles    map[string]*unstructured.Unstructured // by kind and name
	bound    map[string]bool                       // the roles that accounts have
	bindings []*unstructured.Unstructured
	others   []*unstructured.Unstructured // which go into the bundle as they are
}

// plain are the kinds that a bundle can have as they are, beside CRDs and roles.
var plain = []string{ //nolint:gochecknoglobals // A constant.
	"ConfigMap", "ConsoleCLIDownload", "ConsoleLink", "ConsoleQuickStart", "ConsoleYAMLSample", "NetworkPolicy", "PodDisruptionBudget",
	"PriorityClass", "PrometheusRule", "Secret", "Service", "ServiceMonitor", "VerticalPodAutoscaler",
}

// take adds an object of the deployment.
func (s *service) take(object *unstructured.Unstructured) error {
	switch kind := object.GetKind(); kind {
	case "Namespace", "ServiceAccount": // The Lifecycle Manager makes them.
	case "Deployment":
		return s.deploy(object)
	case "CustomResourceDefinition":
		s.others = append(s.others, object)
		return s.own(object)
	case "ClusterRole", "Role":
		s.roles[kind+"/"+object.GetName()] = object
	case "ClusterRoleBinding", "RoleBinding":
		s.bindings = append(s.bindings, object)
	default:
		if !slices.Contains(plain, kind) {
			return fmt.Errorf("%s %s: a bundle cannot have this kind. Leave it out of what is rendered, webhooks and their certificates too: those need webhookdefinitions, which are not written", kind, object.GetName())
		}
		s.others = append(s.others, object)
	}
	return nil
}

func (s *service) deploy(object *unstructured.Unstructured) error {
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(object.Object, path...)
	if err != nil || len(containers) == 0 {
		return errors.Join(fmt.Errorf("the Deployment %s has no container", object.GetName()), err)
	}
	container, _ := containers[max(0, slices.IndexFunc(containers, isNamed("manager")))].(map[string]any)
	env, _, err := unstructured.NestedSlice(container, "env")
	if err != nil {
		return fmt.Errorf("the Deployment %s: %w", object.GetName(), err)
	}
	// The Lifecycle Manager writes there which namespaces an OperatorGroup chooses.
	const name = "WATCH_NAMESPACE"
	container["env"] = append(slices.DeleteFunc(env, isNamed(name)), map[string]any{"name": name, "valueFrom": map[string]any{
		"fieldRef": map[string]any{"fieldPath": "metadata.annotations['olm.targetNamespaces']"},
	}})
	if err := unstructured.SetNestedSlice(object.Object, containers, path...); err != nil {
		return err
	}
	s.image, _, _ = unstructured.NestedString(container, "image")
	deployment := map[string]any{"name": object.GetName(), "spec": object.Object["spec"]}
	if labels, has, _ := unstructured.NestedMap(object.Object, "metadata", "labels"); has {
		deployment["label"] = labels
	}
	s.deployments = append(s.deployments, deployment)
	return nil
}

// isNamed reports whether an element of a list has the name.
func isNamed(name string) func(element any) bool {
	return func(element any) bool {
		fields, _ := element.(map[string]any)
		return fields["name"] == name
	}
}

// own adds the description of a kind.
func (s *service) own(object *unstructured.Unstructured) error {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := convert(object, definition); err != nil {
		return err
	}
	s.kinds = append(s.kinds, definition.Spec.Names.Kind)
	for _, version := range definition.Spec.Versions {
		described := map[string]any{"name": definition.Name, "version": version.Name, "kind": definition.Spec.Names.Kind, "displayName": definition.Spec.Names.Kind}
		if version.Schema != nil && version.Schema.OpenAPIV3Schema.Description != "" {
			described["description"] = version.Schema.OpenAPIV3Schema.Description
		}
		s.owned = append(s.owned, described)
	}
	return nil
}

// permit gives each account the rules of the roles that are bound to it.
func (s *service) permit() error {
	s.rules = map[bool]map[string][]any{true: {}, false: {}}
	for _, object := range s.bindings {
		binding := &rbacv1.ClusterRoleBinding{} // The others have the same fields.
		if err := convert(object, binding); err != nil {
			return err
		}
		name := binding.RoleRef.Kind + "/" + binding.RoleRef.Name
		if s.roles[name] == nil || len(binding.Subjects) != 1 {
			return fmt.Errorf("%s %s: want a role of config/rbac and one account", object.GetKind(), object.GetName())
		}
		rules, _, err := unstructured.NestedSlice(s.roles[name].Object, "rules")
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.bound[name] = true
		of, account := s.rules[object.GetKind() == "ClusterRoleBinding"], binding.Subjects[0].Name
		of[account] = append(of[account], rules...)
	}
	return nil
}

// permissions returns the rules of each account.
func permissions(rules map[string][]any) (all []any) {
	for _, account := range slices.Sorted(maps.Keys(rules)) {
		all = append(all, map[string]any{"serviceAccountName": account, "rules": rules[account]})
	}
	return all
}

// rest returns the objects beside the ClusterServiceVersion. A role without a binding is for people.
func (s *service) rest() []*unstructured.Unstructured {
	for _, name := range slices.Sorted(maps.Keys(s.roles)) {
		if !s.bound[name] {
			s.others = append(s.others, s.roles[name])
		}
	}
	return s.others
}

// complete returns the ClusterServiceVersion with the words of the bundle.
func (s *service) complete(b Bundle, pack, number string) (*unstructured.Unstructured, error) {
	examples := []map[string]any{}
	for _, sample := range b.Samples {
		if slices.Contains(s.kinds, sample.GetKind()) {
			examples = append(examples, sample.Object)
		}
	}
	text, err := json.MarshalIndent(examples, "", "  ")
	if err != nil {
		return nil, err
	}
	whole := b.Words.DeepCopy()
	whole.SetName(pack + ".v" + number)
	annotations := whole.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["alm-examples"] = string(text)
	annotations["containerImage"] = s.image
	// Each older version is upgraded to this one.
	annotations["olm.skipRange"] = "<" + number
	whole.SetAnnotations(annotations)
	spec, _ := whole.Object["spec"].(map[string]any)
	if spec == nil {
		return nil, errors.New("the ClusterServiceVersion has no spec")
	}
	install := map[string]any{"deployments": s.deployments}
	for field, rules := range map[string]map[string][]any{"permissions": s.rules[false], "clusterPermissions": s.rules[true]} {
		if len(rules) > 0 {
			install[field] = permissions(rules)
		}
	}
	spec["version"] = number
	spec["install"] = map[string]any{"strategy": "deployment", "spec": install}
	spec["customresourcedefinitions"] = map[string]any{"owned": s.owned}
	if b.Icon != nil {
		spec["icon"] = []any{map[string]any{"base64data": base64.StdEncoding.EncodeToString(b.Icon), "mediatype": "image/svg+xml"}}
	}
	return whole, nil
}

// convert reads an object as its type, and refuses fields that the type does not have.
func convert(object *unstructured.Unstructured, into any) error {
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true)
	if err != nil {
		return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
