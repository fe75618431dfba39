package children

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	pathpkg "path"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// pieces of random values: what has a meaning in URLs, shells, YAML or selectors.
var pieces = []string{
	"/", ".", "..", "%", "?", "#", `\`, ";", "\x00", "\n", "\u00e9", "\uff0e", "\u2215", "%2e%2e", "%2E", "%2f", "%5c", "%252e", "%00", "&", "=", ",", " ", "*", ":", "'", `"`, "{}", "!",
	"a", "meant", "x", "../", "/../", "../../", "dryRun=All", "secrets", "configmaps", "namespaces", "status", "v1",
}

// source makes random values, the same for the same seed.
type source struct {
	*rand.Rand

	aims []string // names of objects and namespaces of others
}

// value returns one that is none of the names itself: what has that name is meant.
func (s *source) value() string {
	for {
		var text strings.Builder
		for range 1 + s.IntN(3)*s.IntN(3) {
			if s.IntN(6) == 0 {
				text.WriteString(s.aims[s.IntN(len(s.aims))])
			} else {
				text.WriteString(pieces[s.IntN(len(pieces))])
			}
		}
		if !slices.Contains(s.aims, text.String()) {
			return text.String()
		}
	}
}

// argument returns a value that can be the argument of a program.
func (s *source) argument() string { return strings.ReplaceAll(s.value(), "\x00", "") }

// call is one command of a run's content that uses a value of the CR, and what it may reach.
type call struct {
	program string
	args    []string
	// manifest stands in the file manifest.json.
	manifest any

	// resources, the namespace and the names are what the author of the content meant; any is true
	// where the value chooses among all names of that namespace and resource.
	resources []string
	namespace string
	names     []string
	any       bool
}

const (
	kubectl = "bin/controlplane/kubectl"
	helm    = "bin/tools/helm"
)

// calls are the places of a command in which content uses a value of its CR. Own is the CR's
// namespace.
func calls(s *source, own string) []call {
	value, configMap, rel := s.argument(), []string{"configmaps"}, fmt.Sprintf("rel-%d", s.Uint32())
	byName := func(args ...string) call {
		return call{program: kubectl, args: append([]string{"-n", own}, args...), resources: []string{"configmaps", "secrets", "pods", "deployments"}, namespace: own, names: []string{value}}
	}
	inNamespace := func(args ...string) call {
		return call{program: kubectl, args: append([]string{"-n", value}, args...), resources: configMap, namespace: value, names: []string{"meant"}}
	}
	bySelector := func(args ...string) call {
		return call{program: kubectl, args: append([]string{"-n", own}, args...), resources: configMap, namespace: own, any: true}
	}
	release := func(args ...string) call {
		return call{program: helm, args: append([]string{"-n", own}, args...), resources: []string{"configmaps", "secrets"}, namespace: own, names: []string{value}}
	}
	path := "/api/v1/namespaces/" + own + "/configmaps/" + value
	asIs := func(method string) call {
		return call{program: method, args: []string{path}, resources: configMap, namespace: own, any: true}
	}
	all := []call{
		byName("get", "configmap", "--", value),
		byName("delete", "configmap", "--wait=false", "--", value),
		byName("label", "--overwrite", "configmap", "a=b", "--", value),
		byName("annotate", "--overwrite", "secret", "a=b", "--", value),
		byName("patch", "configmap", "-p", `{"data":{"a":"b"}}`, "--", value),
		byName("create", "secret", "generic", value),
		byName("scale", "deployment", "--replicas=1", "--", value),
		byName("logs", value),
		inNamespace("get", "configmap", "--", "meant"),
		inNamespace("delete", "configmap", "--wait=false", "--", "meant"),
		inNamespace("create", "configmap", "meant"),
		bySelector("delete", "configmap", "--dry-run=server", "--wait=false", "-l", value),
		bySelector("get", "configmap", "--field-selector", value),
		asIs(http.MethodGet), asIs(http.MethodPatch), asIs(http.MethodPut), asIs(http.MethodDelete),
		release("upgrade", "--install", "--", value, "chart"),
		release("uninstall", "--", value),
		release("rollback", "--", value, "1"),
		release("get", "values", "--", value),
		{program: helm, args: []string{"-n", value, "upgrade", "--install", "meant", "chart"}, resources: []string{"configmaps", "secrets"}, namespace: value, names: []string{"meant"}},
		{program: helm, args: []string{"-n", own, "upgrade", "--install", rel, "chart", "--set-json", "name=" + encoded(value)}, resources: []string{"configmaps", "secrets"}, namespace: own, names: []string{rel, value}},
	}
	// kubectl resolves "." and ".." of a path that content has put together: see docs/security.md.
	if decoded, err := url.PathUnescape(value); err == nil && pathpkg.Clean("/"+decoded) == "/"+decoded {
		all = append(all, bySelector("get", "--raw", path), bySelector("delete", "--raw", path))
	}
	return append(all, manifests(s, own)...)
}

// manifests are calls with a value in an object's definition.
func manifests(s *source, own string) (all []call) {
	verbs := [][]string{{"apply"}, {"apply", "--server-side"}, {"create"}, {"replace", "--force", "--wait=false"}, {"delete", "--wait=false"}}
	for _, place := range []string{"name", "namespace", "kind", "apiVersion", "label"} {
		value := s.value()
		metadata := object{"name": "meant", "namespace": own, "labels": object{"a": "b"}}
		manifest := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
		c := call{program: kubectl, args: append(slices.Clone(verbs[s.IntN(len(verbs))]), "--validate=false", "-f", "manifest.json"), manifest: manifest, resources: []string{"configmaps"}, namespace: own, names: []string{"meant"}}
		switch place {
		case "name":
			metadata["name"], c.names = value, []string{value}
		case "namespace":
			metadata["namespace"], c.namespace = value, value
		case "label":
			metadata["labels"] = object{"a": value, value: "b"}
		default:
			manifest[place] = value
		}
		if c.args[0] == "delete" {
			c.args = slices.DeleteFunc(c.args, func(arg string) bool { return arg == "--validate=false" })
		}
		all = append(all, c)
	}
	return all
}

func encoded(value string) string {
	GinkgoHelper()
	text, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// reaches says what a request reaches that the call does not mean; "" if it is meant.
func (c *call) reaches(e *auditv1.Event) string {
	about := e.ObjectRef
	if about == nil || about.Resource == "" {
		if e.Verb == "get" {
			return "" // What is served.
		}
		return "no resource"
	}
	if about.Resource == "namespaces" && e.Verb == "get" && about.Name == c.namespace {
		return "" // kubectl apply looks for the namespace.
	}
	named := slices.ContainsFunc(c.names, func(name string) bool {
		return about.Name == name || about.Resource == "secrets" && strings.HasPrefix(about.Name, "sh.helm.release.v1."+name+".v")
	})
	// Helm looks for the revisions of a release among all in the namespace.
	lists := e.Verb == "list" && (c.program == helm && about.Resource == "secrets" && strings.Contains(e.RequestURI, "owner%3Dhelm") || c.any)
	switch {
	case e.Verb == "deletecollection":
		return "all objects at once"
	case !slices.Contains(c.resources, about.Resource):
		return "another kind"
	case about.Namespace != c.namespace:
		return "another namespace"
	case !named && !lists && (!c.any || about.Name == ""):
		return "another name"
	}
	return ""
}
