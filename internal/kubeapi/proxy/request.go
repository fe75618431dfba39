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

	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
)

// maxOptionsBytes bounds how much of a deletion's body is read. The body has a few options.
const maxOptionsBytes = 64 << 10

// request is a request of a run that ServeHTTP handles.
type request struct {
	*http.Request

	session *access.Session
	// info has the verb and the resource, as the API server reads them.
	info *apirequest.RequestInfo
	// ended is called with the status code of the response to a run.
	ended func(code int)
}

func (q *request) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: q.info.APIGroup, Version: q.info.APIVersion, Resource: q.info.Resource}
}

// namespace returns the object's namespace, "" for a cluster-scoped object. RequestInfo has the
// name of a Namespace object also as its namespace.
func (q *request) namespace() string {
	if q.info.APIGroup == "" && q.info.Resource == "namespaces" {
		return ""
	}
	return q.info.Namespace
}

// writes reports whether the request changes objects of the API server.
func (q *request) writes() bool {
	return q.info.IsResourceRequest && !isReview(q.info.APIGroup) && !q.connects() && !q.makesToken() &&
		slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, q.info.Verb)
}

// makesToken reports whether the request makes a token of a service account, which is not stored.
func (q *request) makesToken() bool {
	return q.info.Resource == "serviceaccounts" && q.info.Subresource == "token"
}

// connects reports whether the API server connects the client with a node, a pod or a service.
func (q *request) connects() bool {
	return slices.Contains([]string{"exec", "attach", "portforward", "proxy"}, q.info.Subresource)
}

// mayHaveEffects reports whether the request may change anything, in the API or behind it.
func (q *request) mayHaveEffects() bool {
	if isReview(q.info.APIGroup) {
		return false
	}
	return !q.readsOnly() || q.connects() || q.info.Verb == "proxy"
}

// readsOnly reports whether the method is one that changes nothing.
func (q *request) readsOnly() bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, q.Method)
}

// impersonates reports whether the client asks to act as another account.
func (q *request) impersonates() bool { return impersonation(q.Header) != "" }

// username returns the user as which the run makes all requests; "" for the manager. A request
// to the open port is of no run.
func (q *request) username() string {
	if q.session == nil {
		return ""
	}
	return q.session.Username
}

func (q *request) write() access.Write {
	return access.Write{Verb: q.info.Verb, Resource: q.resource(), Subresource: q.info.Subresource, Namespace: q.namespace(), Name: q.info.Name}
}

// isReview reports whether the group has review kinds, of which nothing is stored.
func isReview(group string) bool {
	return group == "authentication.k8s.io" || group == "authorization.k8s.io"
}

// isDryRun reports whether the request is a dry run. The second result is false where the proxy
// cannot tell.
func (q *request) isDryRun() (dryRun, known bool) {
	inQuery := q.URL.Query().Has("dryRun")
	if !q.write().Deletes() {
		return inQuery, true
	}
	body, complete := q.peekBody()
	if len(body) == 0 {
		return inQuery, true
	}
	// The API server ignores the query of a deletion that has a body. For an eviction it reads
	// both.
	options, err := readDeleteOptions(q.Header.Get("Content-Type"), body, q.info.Subresource == "eviction")
	if err != nil || !complete {
		return inQuery && q.info.Subresource == "eviction", false
	}
	return len(options.DryRun) > 0 || inQuery && q.info.Subresource == "eviction", true
}

// peekBody returns the beginning of the body, and whether that is all of it. The body can still
// be read in full after that.
func (q *request) peekBody() (beginning []byte, complete bool) {
	if q.Body == nil || q.Body == http.NoBody {
		return nil, true
	}
	beginning, err := io.ReadAll(io.LimitReader(q.Body, maxOptionsBytes))
	complete = err == nil && len(beginning) < maxOptionsBytes
	q.Body = &peekedBody{io.MultiReader(bytes.NewReader(beginning), q.Body), q.Body}
	return beginning, complete
}

// peekedBody reads a body from its beginning again.
type peekedBody struct {
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

// cancelableWriter is a ResponseWriter that closes a hijacked connection when the context ends.
type cancelableWriter struct {
	http.ResponseWriter

	ctx context.Context //nolint:containedctx // It is the context of the writer's request.
}

// Unwrap is for http.ResponseController.
func (c *cancelableWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Flush implements http.Flusher.
func (c *cancelableWriter) Flush() { _ = http.NewResponseController(c.ResponseWriter).Flush() }

// Hijack implements http.Hijacker.
func (c *cancelableWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(c.ResponseWriter).Hijack()
	if err == nil {
		context.AfterFunc(c.ctx, func() { _ = conn.Close() })
	}
	return conn, buffered, err
}
