package readcache

import (
	"mime"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// question is a read that a complete cache can answer as the API server would.
type question struct {
	resource schema.GroupVersionResource
	// namespace is "" for all, and for what is cluster-scoped.
	namespace string
	// name is "" for a list.
	name string
	// selector is nil for everything.
	selector labels.Selector
}

// key is that of the object in a store.
func (q question) key() string {
	if q.namespace == "" {
		return q.name
	}
	return q.namespace + "/" + q.name
}

// path is that of the request.
func (q question) path() string {
	path := collection(q.resource, q.namespace)
	if q.name != "" {
		path += "/" + q.name
	}
	return path
}

// collection is the path of a kind's objects.
func collection(resource schema.GroupVersionResource, namespace string) string {
	path := "/apis/" + resource.Group
	if resource.Group == "" {
		path = "/api"
	}
	path += "/" + resource.Version
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + resource.Resource
}

// ask reads a request. It is false for what only the API server can answer, and for
// all that is not understood to the last parameter.
func ask(r *http.Request, info *apirequest.RequestInfo) (question, bool) {
	q := question{
		resource:  schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource},
		namespace: info.Namespace,
		name:      info.Name,
	}
	if isNamespaces(q.resource.GroupResource()) {
		q.namespace = "" // RequestInfo says that a namespace is in itself.
	}
	verb := "list"
	if q.name != "" {
		verb = "get"
	}
	switch {
	case r.Method != http.MethodGet || !info.IsResourceRequest || info.Verb != verb || info.Subresource != "":
	case r.URL.Path != q.path():
	case isSecret(q.resource.GroupResource()):
	case !wantsJSON(r.Header):
	default:
		var ok bool
		q.selector, ok = parameters(r.URL, verb)
		return q, ok
	}
	return question{}, false
}

func isNamespaces(resource schema.GroupResource) bool {
	return resource == schema.GroupResource{Resource: "namespaces"}
}

func isSecret(resource schema.GroupResource) bool {
	return resource == schema.GroupResource{Resource: "secrets"}
}

// parameters reads the query.
func parameters(u *url.URL, verb string) (selector labels.Selector, ok bool) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, false
	}
	for name, values := range query {
		switch {
		case len(values) != 1:
			return nil, false
		case asksNothing(name, values[0]):
		case name == "labelSelector" && verb == "list":
			if selector, err = labels.Parse(values[0]); err != nil {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return selector, true
}

// asksNothing tells whether a parameter is as good as none. Python's client sends
// some without a value.
func asksNothing(name, value string) bool {
	switch name {
	case "resourceVersion":
		return value == "" || value == "0"
	case "labelSelector", "fieldSelector", "limit", "continue", "resourceVersionMatch", "timeoutSeconds":
		return value == ""
	default:
		return false
	}
}

// wantsJSON tells whether the API server would answer with whole objects in plain
// JSON. It takes the first of what a client accepts that it can give, and it can
// give that one.
func wantsJSON(header http.Header) bool {
	accept := strings.Join(header.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return true
	}
	first, _, _ := strings.Cut(accept, ",")
	mediaType, parameters, err := mime.ParseMediaType(first)
	if err != nil || len(parameters) > 0 {
		return false // Among them the q of a preference, and the as of a Table.
	}
	return mediaType == "application/json" || mediaType == "application/*" || mediaType == "*/*"
}
