package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// service is a ClusterServiceVersion in the making. The manager makes other objects of
// those that it takes: it creates the account, the roles and their bindings itself.
type service struct {
	v1alpha1.ClusterServiceVersion

	roles    map[string]*unstructured.Unstructured // of the account, by kind and name
	bindings []*unstructured.Unstructured
	others   []*unstructured.Unstructured // which go into the bundle as they are
}

// newService reads the words of the bundle.
func newService(root string) (*service, error) {
	s := &service{roles: map[string]*unstructured.Unstructured{}}
	path := filepath.Join(root, "config", "manifests", "clusterserviceversion.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalStrict(text, &s.ClusterServiceVersion); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	icon, err := os.ReadFile(filepath.Join(root, "config", "manifests", "icon.svg"))
	s.Spec.Icon = []v1alpha1.Icon{{Data: base64.StdEncoding.EncodeToString(icon), MediaType: "image/svg+xml"}}
	s.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	return s, err
}

// number gives the bundle its version. An older one is upgraded to it, whichever it is.
func (s *service) number(version string) error {
	parsed, err := semver.ParseTolerant(version)
	if err != nil {
		return fmt.Errorf("-version: %w", err)
	}
	s.Name, s.Spec.Version.Version = "ensign.v"+parsed.String(), parsed
	s.Annotations["olm.skipRange"] = "<" + parsed.String()
	return nil
}

// take adds an object of config/default.
func (s *service) take(object *unstructured.Unstructured) error {
	switch object.GetKind() {
	case "Namespace", "ServiceAccount": // The Lifecycle Manager makes them.
	case "Deployment":
		return s.deploy(object)
	case "CustomResourceDefinition":
		s.others = append(s.others, object)
		return s.own(object)
	case "ClusterRole", "Role":
		s.roles[object.GetKind()+"/"+object.GetName()] = object
	case "ClusterRoleBinding", "RoleBinding":
		s.bindings = append(s.bindings, object)
	default:
		s.others = append(s.others, object)
	}
	return nil
}

func (s *service) deploy(object *unstructured.Unstructured) error {
	deployment := &appsv1.Deployment{}
	if err := convert(object, deployment); err != nil {
		return err
	}
	container := &deployment.Spec.Template.Spec.Containers[0]
	// The Lifecycle Manager writes there which namespaces an OperatorGroup chooses.
	container.Env = append(container.Env, corev1.EnvVar{Name: "WATCH_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['olm.targetNamespaces']"},
	}})
	s.Annotations["containerImage"] = container.Image
	strategy := &s.Spec.InstallStrategy.StrategySpec
	strategy.DeploymentSpecs = append(strategy.DeploymentSpecs, v1alpha1.StrategyDeploymentSpec{
		Name: deployment.Name, Label: deployment.Labels, Spec: deployment.Spec,
	})
	return nil
}

// own adds the description of a kind.
func (s *service) own(object *unstructured.Unstructured) error {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := convert(object, definition); err != nil {
		return err
	}
	for _, version := range definition.Spec.Versions {
		s.Spec.CustomResourceDefinitions.Owned = append(s.Spec.CustomResourceDefinitions.Owned, v1alpha1.CRDDescription{
			Name: definition.Name, Version: version.Name, Kind: definition.Spec.Names.Kind, DisplayName: definition.Spec.Names.Kind,
			Description: version.Schema.OpenAPIV3Schema.Description,
		})
	}
	return nil
}

// permit gives each account the rules of the roles that are bound to it. A role without
// a binding is for people, and goes into the bundle as it is.
func (s *service) permit() error {
	strategy := &s.Spec.InstallStrategy.StrategySpec
	for _, object := range s.bindings {
		binding, role := &rbacv1.ClusterRoleBinding{}, &rbacv1.ClusterRole{} // The others have the same fields.
		if err := convert(object, binding); err != nil {
			return err
		}
		name := binding.RoleRef.Kind + "/" + binding.RoleRef.Name
		if s.roles[name] == nil || len(binding.Subjects) != 1 {
			return fmt.Errorf("%s %s: want a role of config/rbac and one account", object.GetKind(), object.GetName())
		}
		if err := convert(s.roles[name], role); err != nil {
			return err
		}
		defer delete(s.roles, name)
		permissions := &strategy.Permissions
		if object.GetKind() == "ClusterRoleBinding" {
			permissions = &strategy.ClusterPermissions
		}
		*permissions = granted(*permissions, binding.Subjects[0].Name, role.Rules)
	}
	return nil
}

func granted(all []v1alpha1.StrategyDeploymentPermissions, account string, rules []rbacv1.PolicyRule) []v1alpha1.StrategyDeploymentPermissions {
	for i := range all {
		if all[i].ServiceAccountName == account {
			all[i].Rules = append(all[i].Rules, rules...)
			return all
		}
	}
	return append(all, v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: account, Rules: rules})
}

// exemplify shows the samples of our kinds in consoles.
func (s *service) exemplify(samples []*unstructured.Unstructured) error {
	var examples []map[string]any
	for _, sample := range samples {
		for _, owned := range s.Spec.CustomResourceDefinitions.Owned {
			if sample.GetKind() == owned.Kind {
				examples = append(examples, sample.Object)
			}
		}
	}
	text, err := json.MarshalIndent(examples, "", "  ")
	s.Annotations["alm-examples"] = string(text)
	return err
}
