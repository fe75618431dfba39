package proxy

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy/ownership"
)

// maxOptionsBytes is how much of a deletion's body is read; it holds a handful of
// options.
const maxOptionsBytes = 64 << 10

// request is one request of a run, on its way through the steps of ServeHTTP.
type request struct {
	*http.Request

	session *access.Session
	// info is what it is about.
	info *apirequest.RequestInfo
}

func (q *request) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: q.info.APIGroup, Version: q.info.APIVersion, Resource: q.info.Resource}
}

// namespace is that of the object, "" for what is cluster-scoped. RequestInfo takes a
// namespace for something within itself.
func (q *request) namespace() string {
	if q.info.APIGroup == "" && q.info.Resource == "namespaces" {
		return ""
	}
	return q.info.Namespace
}

// writes reports whether the request changes what the API server stores.
func (q *request) writes() bool {
	return q.info.IsResourceRequest && !isReview(q.info.APIGroup) && !q.connects() &&
		slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, q.info.Verb)
}

// connects reports whether the request goes through the API server to a node, a pod or a
// service.
func (q *request) connects() bool {
	return slices.Contains([]string{"exec", "attach", "portforward", "proxy"}, q.info.Subresource)
}

// hasEffects reports whether anything may be different after the request.
func (q *request) hasEffects() bool {
	if isReview(q.info.APIGroup) {
		return false
	}
	reads := slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, q.Method)
	return !reads || q.connects() || q.info.Verb == "proxy"
}

func (q *request) write() access.Write {
	return access.Write{Verb: q.info.Verb, Resource: q.resource(), Subresource: q.info.Subresource, Namespace: q.namespace(), Name: q.info.Name}
}

// isReview reports whether the group's kinds are questions: nothing is stored.
func isReview(group string) bool {
	return group == "authentication.k8s.io" || group == "authorization.k8s.io"
}

// isDry reports whether the request asks for nothing to be changed. The second result is
// false where that can't be told.
func (q *request) isDry() (dry, known bool) {
	if q.info.Verb == "delete" || q.info.Verb == "deletecollection" {
		// The API server does not look at the query of a deletion that has a body.
		body, complete := q.peekBody()
		if len(body) > 0 {
			options, err := readDeleteOptions(body)
			return err == nil && len(options.DryRun) > 0, err == nil && complete
		}
	}
	return q.URL.Query().Has("dryRun"), true
}

// readDeleteOptions knows members by their exact names, as the API server does.
func readDeleteOptions(body []byte) (options metav1.DeleteOptions, err error) {
	if body, err = ownership.YAMLToJSON(body); err != nil {
		return options, err
	}
	return options, json.Unmarshal(body, &options)
}

// peekBody returns the beginning of the body, which stays as it was.
func (q *request) peekBody() (beginning []byte, complete bool) {
	if q.Body == nil || q.Body == http.NoBody {
		return nil, true
	}
	beginning, err := io.ReadAll(io.LimitReader(q.Body, maxOptionsBytes))
	complete = err == nil && len(beginning) < maxOptionsBytes
	q.Body = &peeked{io.MultiReader(bytes.NewReader(beginning), q.Body), q.Body}
	return beginning, complete
}

type peeked struct {
	io.Reader
	io.Closer
}

func (q *request) replaceBody(body []byte, contentType string) {
	q.Body = io.NopCloser(bytes.NewReader(body))
	q.ContentLength = int64(len(body))
	q.TransferEncoding = nil
	q.Header.Set("Content-Length", strconv.Itoa(len(body)))
	if contentType != "" {
		q.Header.Set("Content-Type", contentType)
	}
}

// severable is the writer of an answer whose connection ends with the context, also when
// it has been taken over for a stream.
type severable struct {
	http.ResponseWriter

	ctx context.Context //nolint:containedctx // It is that of the request which is answered.
}

// Unwrap is for http.ResponseController.
func (s *severable) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Flush implements http.Flusher.
func (s *severable) Flush() { _ = http.NewResponseController(s.ResponseWriter).Flush() }

// Hijack implements http.Hijacker.
func (s *severable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(s.ResponseWriter).Hijack()
	if err == nil {
		context.AfterFunc(s.ctx, func() { _ = conn.Close() })
	}
	return conn, buffered, err
}
