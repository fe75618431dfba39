package rights

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/author/content"
)

// Granted are the rights that roles in files give.
type Granted struct {
	Rights map[Right]bool
	// Roles are the positions of the roles, in the order of the files.
	Roles []content.Position
}

type role struct {
	name  string
	at    content.Position
	rules *yaml.Node
}

// ReadGranted reads the roles in the file, or in the YAML files below the directory. Where
// bindings are among them, only the roles that are bound to a service account count: others
// are for people.
func ReadGranted(path string) (Granted, error) {
	g := Granted{Rights: map[Right]bool{}}
	var roles []role
	bound := map[string]bool{}
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() || filepath.Ext(file) != ".yaml" && filepath.Ext(file) != ".yml" && file != path {
			return nil
		}
		documents, fault := content.ReadYAML(file)
		if fault != nil {
			return &fs.PathError{Op: "read", Path: fault.Position.String(), Err: os.ErrInvalid}
		}
		for _, d := range documents {
			switch kind := content.Scalar(content.Field(d, "kind")); kind {
			case "Role", "ClusterRole":
				roles = append(roles, role{
					kind + "/" + content.Scalar(content.Field(content.Field(d, "metadata"), "name")),
					content.Position{File: file, Line: d.Line, Column: d.Column}, content.Field(d, "rules"),
				})
			case "RoleBinding", "ClusterRoleBinding":
				ref := content.Field(d, "roleRef")
				if forAccount(content.Field(d, "subjects")) {
					bound[content.Scalar(content.Field(ref, "kind"))+"/"+content.Scalar(content.Field(ref, "name"))] = true
				}
			}
		}
		return nil
	})
	for _, r := range roles {
		if len(bound) == 0 || bound[r.name] {
			g.Roles = append(g.Roles, r.at)
			g.add(r.rules)
		}
	}
	return g, err
}

func forAccount(subjects *yaml.Node) bool {
	if subjects == nil {
		return false
	}
	for _, s := range subjects.Content {
		if content.Scalar(content.Field(s, "kind")) == "ServiceAccount" {
			return true
		}
	}
	return false
}

func (g Granted) add(rules *yaml.Node) {
	if rules == nil {
		return
	}
	for _, rule := range rules.Content {
		for _, group := range list(rule, "apiGroups") {
			for _, resource := range list(rule, "resources") {
				for _, verb := range list(rule, "verbs") {
					g.Rights[Right{group, resource, verb}] = true
				}
			}
		}
	}
}

func list(n *yaml.Node, key string) []string {
	var found []string
	if values := content.Field(n, key); values != nil {
		for _, v := range values.Content {
			found = append(found, content.Scalar(v))
		}
	}
	return found
}

// Covers reports whether a right is given, also by "*".
func (g Granted) Covers(r Right) bool {
	resources := []string{r.Resource, "*"}
	if _, sub, has := strings.Cut(r.Resource, "/"); has {
		resources = append(resources, "*/"+sub)
	}
	for _, group := range []string{r.Group, "*"} {
		for _, resource := range resources {
			if g.Rights[Right{group, resource, r.Verb}] || g.Rights[Right{group, resource, "*"}] {
				return true
			}
		}
	}
	return false
}
