package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refusedError says why the proxy does not forward a request, and has the HTTP status for it.
type refusedError struct {
	code    int
	message string
	// retryAfter is in seconds; 0 means no Retry-After header.
	retryAfter int
}

func (e *refusedError) Error() string { return e.message }

func refusal(code int, format string, args ...any) error {
	return &refusedError{code: code, message: fmt.Sprintf(format, args...)}
}

// refusalOfAPIError returns the refusal of a request for which a look-up at the API server has
// failed. It has the API server's status, or 502 if there was no response.
func refusalOfAPIError(err error) error {
	refused := &refusedError{code: http.StatusBadGateway, message: err.Error()}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && status.ErrStatus.Code >= http.StatusBadRequest {
		refused.code = int(status.ErrStatus.Code)
		refused.retryAfter, _ = apierrors.SuggestsClientDelay(status)
	}
	return refused
}

// refuse responds with a Status object, as clients of Kubernetes expect.
func refuse(w http.ResponseWriter, err error) {
	refused, ok := errors.AsType[*refusedError](err)
	if !ok {
		refused = &refusedError{code: http.StatusInternalServerError, message: err.Error()}
	}
	if refused.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(refused.retryAfter))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(refused.code)
	reason := map[int]metav1.StatusReason{
		http.StatusUnauthorized:          metav1.StatusReasonUnauthorized,
		http.StatusBadRequest:            metav1.StatusReasonBadRequest,
		http.StatusForbidden:             metav1.StatusReasonForbidden,
		http.StatusRequestTimeout:        metav1.StatusReasonTimeout,
		http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
		http.StatusUnsupportedMediaType:  metav1.StatusReasonUnsupportedMediaType,
		http.StatusTooManyRequests:       metav1.StatusReasonTooManyRequests,
		http.StatusInternalServerError:   metav1.StatusReasonInternalError,
		http.StatusBadGateway:            metav1.StatusReasonServiceUnavailable,
		http.StatusServiceUnavailable:    metav1.StatusReasonServiceUnavailable,
		http.StatusGatewayTimeout:        metav1.StatusReasonTimeout,
	}[refused.code]
	// An error means that the client has closed the connection.
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Code:     int32(refused.code),
		Reason:   reason,
		Message:  "ensign API proxy: " + refused.message,
	})
}

// refuseWithoutResponse refuses a request that the proxy has forwarded and that got no response.
func refuseWithoutResponse(w http.ResponseWriter, err error) {
	if recorder, ok := w.(*responseRecorder); ok {
		recorder.notUpstream = true
	}
	refuse(w, refusal(http.StatusBadGateway, "%v", err))
}

// checkPath refuses paths that the proxy and the API server might interpret differently.
func checkPath(u *url.URL) error {
	escaped := strings.ToLower(u.EscapedPath())
	if strings.Contains(escaped, "%2f") || strings.Contains(escaped, "%5c") {
		return refusal(http.StatusBadRequest, "the path holds an encoded slash")
	}
	clean := path.Clean("/" + u.Path)
	if u.Path != clean && u.Path != clean+"/" {
		return refusal(http.StatusBadRequest, "the path is not in its shortest form, %q", clean)
	}
	return nil
}

// checkSlash refuses a path that ends with a slash where it names a resource, and in every write.
// HTTP clients resolve a name that is "." or ".." before they send it: the deletion of such an
// object becomes that of all objects in the namespace, or of the namespace itself.
func checkSlash(_ http.ResponseWriter, q *request) error {
	if !strings.HasSuffix(q.URL.Path, "/") || q.URL.Path == "/" {
		return nil
	}
	// The rest behind "proxy/" is a path of a pod, a service or a node.
	behind := q.info.IsResourceRequest && q.info.Subresource == "proxy"
	if behind || !q.info.IsResourceRequest && q.readsOnly() {
		return nil
	}
	return refusal(http.StatusBadRequest, `%s %s ends with a slash: is the name of an object or a namespace empty, "." or ".."?`, q.Method, q.URL.Path)
}

// impersonatePrefix is that of the headers by which a client acts as another account.
const impersonatePrefix = "impersonate-"

// checkImpersonation refuses a request that would reach the API server with more rights than its
// client has asked for.
func (p *Proxy) checkImpersonation(_ http.ResponseWriter, q *request) error {
	for hop := range strings.SplitSeq(strings.Join(q.Header.Values("Connection"), ","), ",") {
		if strings.HasPrefix(strings.ToLower(strings.TrimSpace(hop)), impersonatePrefix) {
			return refusal(http.StatusBadRequest, "the header Connection would remove %s", strings.TrimSpace(hop))
		}
	}
	header, username := impersonation(q.Header), q.username()
	switch {
	case username != "" && p.impersonates:
		return refusal(http.StatusForbidden, "the manager's own kubeconfig impersonates an account, so that no run can act as %s (serviceAccountName): use a kubeconfig that does not", username)
	case header == "":
		return nil
	case username != "":
		return refusal(http.StatusForbidden, "the run acts as %s (serviceAccountName), and %s would replace that", username, header)
	case p.impersonates:
		return refusal(http.StatusForbidden, "the manager's own kubeconfig impersonates an account, and %s would replace that", header)
	}
	return nil // The API server judges whether the manager may impersonate.
}

// impersonation returns the name of a header by which the client acts as another account; "" if there is none.
func impersonation(header http.Header) string {
	for name := range header {
		if strings.HasPrefix(strings.ToLower(name), impersonatePrefix) {
			return name
		}
	}
	return ""
}

// bearerProtocol is the prefix of a WebSocket subprotocol that carries a token.
const bearerProtocol = "base64url.bearer.authorization.k8s.io." //nolint:gosec // The name of a protocol.

// stripIdentity removes headers by which a client could give itself an identity or a source address. The
// transport adds the manager's credentials. Impersonate-* stay: the API server judges whether the
// manager may impersonate, so that a task can act with fewer rights.
func stripIdentity(header http.Header) {
	for name := range header {
		lower := strings.ToLower(name)
		if slices.Contains([]string{"authorization", "forwarded", "x-real-ip"}, lower) ||
			slices.ContainsFunc([]string{"x-remote-", "x-forwarded-"}, func(prefix string) bool { return strings.HasPrefix(lower, prefix) }) {
			delete(header, name)
		}
	}
	const protocols = "Sec-WebSocket-Protocol"
	if values := header.Values(protocols); strings.Contains(strings.Join(values, ","), bearerProtocol) {
		kept := slices.DeleteFunc(strings.Split(strings.Join(values, ","), ","), func(p string) bool { return strings.HasPrefix(strings.TrimSpace(p), bearerProtocol) })
		header.Set(protocols, strings.TrimSpace(strings.Join(kept, ",")))
	}
}

// stripUpgrade removes the headers that ask for an upgraded connection: the proxy could not read
// the response to a write there. Other hop-by-hop headers stay in Connection.
func stripUpgrade(header http.Header) {
	var kept []string
	for hop := range strings.SplitSeq(strings.Join(header.Values("Connection"), ","), ",") {
		hop = strings.TrimSpace(hop)
		if strings.Contains(strings.ToLower(hop), "upgrade") {
			header.Del(hop)
		} else if hop != "" {
			kept = append(kept, hop)
		}
	}
	header.Del("Connection")
	header.Del("Upgrade")
	if len(kept) > 0 {
		header.Set("Connection", strings.Join(kept, ", "))
	}
}
