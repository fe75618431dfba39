package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkPath refuses paths that the proxy and the API server could read
// differently.
func checkPath(u *url.URL) error {
	escaped := strings.ToLower(u.EscapedPath())
	if strings.Contains(escaped, "%2f") || strings.Contains(escaped, "%5c") {
		return errors.New("the path holds an encoded slash")
	}
	clean := path.Clean("/" + u.Path)
	if u.Path != clean && u.Path != clean+"/" {
		return fmt.Errorf("the path is not in its shortest form, %q", clean)
	}
	return nil
}

// stripIdentity removes what a client could use to be somebody else than the
// manager, whose own credentials the transport adds.
func stripIdentity(header http.Header) {
	for name := range header {
		lower := strings.ToLower(name)
		if lower == "authorization" || strings.HasPrefix(lower, "impersonate-") || strings.HasPrefix(lower, "x-remote-") {
			delete(header, name)
		}
	}
}

// refuse answers with a Status object, as clients of Kubernetes expect.
func refuse(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	reason := map[int]metav1.StatusReason{
		http.StatusUnauthorized:          metav1.StatusReasonUnauthorized,
		http.StatusBadRequest:            metav1.StatusReasonBadRequest,
		http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
		http.StatusUnsupportedMediaType:  metav1.StatusReasonUnsupportedMediaType,
		http.StatusBadGateway:            metav1.StatusReasonServiceUnavailable,
		http.StatusServiceUnavailable:    metav1.StatusReasonServiceUnavailable,
	}[code]
	// A client that hung up does not read the answer; there is nobody to tell.
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Code:     int32(code),
		Reason:   reason,
		Message:  "ensign API proxy: " + message,
	})
}

// responder reports failures on the way to the API server.
type responder struct{}

func (responder) Error(w http.ResponseWriter, _ *http.Request, err error) {
	refuse(w, http.StatusBadGateway, err.Error())
}
