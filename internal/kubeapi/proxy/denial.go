package proxy

import (
	"bytes"
	"net/http"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
)

// maxDenialBytes bounds how much of a response is kept to find out why it refuses a request.
const maxDenialBytes = 4 << 10

// answerWriter keeps the status of a response, and the beginning of one with the status 403.
type answerWriter struct {
	*cancelableWriter

	code      int // 0 while there is none, and for a connection that is used for something else
	beginning []byte
}

func (a *answerWriter) forbidden() bool { return a.code == http.StatusForbidden }

// WriteHeader implements http.ResponseWriter.
func (a *answerWriter) WriteHeader(code int) {
	a.code = code
	a.cancelableWriter.WriteHeader(code)
}

func (a *answerWriter) Write(b []byte) (int, error) {
	if a.code == 0 {
		a.code = http.StatusOK
	}
	if a.forbidden() {
		a.beginning = append(a.beginning, b[:min(len(b), maxDenialBytes-len(a.beginning))]...)
	}
	return a.cancelableWriter.Write(b)
}

// reportDenial reports a request to the session that was refused because its account lacks a right. A
// 403 may have other reasons: a quota, a webhook, a namespace that is being deleted, confinement. The
// authorizer's message, as JSON or Protobuf, has the verb. All else comes from the request, because
// the message also has names that its client chose.
func (a *answerWriter) reportDenial(q *request) {
	if !a.forbidden() || q.session.Denied == nil || !q.info.IsResourceRequest || q.impersonates() {
		return
	}
	if bytes.Contains(a.beginning, []byte(" cannot impersonate resource ")) && q.username() != "" {
		q.session.Denied(access.Denial{Verb: "impersonate", Resource: "serviceaccounts", Namespace: q.session.Owner.Namespace})
		return
	}
	for _, verb := range []string{q.info.Verb, "get"} { // The proxy itself gets the object that a write changes.
		if bytes.Contains(a.beginning, []byte(" cannot "+verb+" resource ")) {
			q.session.Denied(access.Denial{
				Username: q.username(),
				Verb:     verb, Group: q.info.APIGroup, Resource: q.info.Resource, Subresource: q.info.Subresource, Namespace: q.namespace(),
			})
			return
		}
	}
}
