// Package kinds has the kinds of the trials, and the operator project that watches
// each of them.
package kinds

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Group is the API group of the kinds, Version their version.
const (
	Group   = "faults.ensign.io"
	Version = "v1"
)

// The kinds: one whose watch has a finalizer, one whose watch has none.
const (
	Play  = "Play"
	Plain = "Plain"
)

// Finalizer is the name of the finalizer.
const Finalizer = Group + "/finalizer"

// All are both kinds.
func All() []string { return []string{Play, Plain} }

// Plural is the name of the kind's resource.
func Plural(kind string) string { return strings.ToLower(kind) + "s" }

// WriteProject makes the operator project of a kind in dir. The stub does not read
// the playbooks; with the real Ansible they run the stub's task.
func WriteProject(dir, kind, task string) error {
	finalizer := ""
	if kind == Play {
		finalizer = ", finalizer: {name: " + Finalizer + ", playbook: finalize.yml}"
	}
	files := map[string]string{
		"watches.yaml": fmt.Sprintf("- {group: %s, version: %s, kind: %s, playbook: play.yml%s}\n", Group, Version, kind, finalizer),
	}
	for _, name := range []string{"play.yml", "finalize.yml"} {
		files[name] = fmt.Sprintf("- hosts: localhost\n  gather_facts: false\n  tasks:\n    - name: work\n      ansible.builtin.command: {argv: [%q, %q]}\n", task, name)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the operator project: %w", err)
	}
	var errs []error
	for name, content := range files {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return errors.Join(errs...)
}

// Definition returns a CRD whose spec and status take anything.
func Definition(kind string) *apiextensionsv1.CustomResourceDefinition {
	anything := true
	free := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: Plural(kind) + "." + Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: Plural(kind), Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": free, "status": free},
				}},
			}},
		},
	}
}
