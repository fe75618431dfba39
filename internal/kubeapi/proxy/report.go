package proxy

import (
	"bytes"
	"mime"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
)

// maxResponseBytes bounds the body of a response that is decoded. Of a longer response only the
// status code is reported.
const maxResponseBytes = 8 << 20

// writeReport reports one write to the observers, and the API server's response.
type writeReport struct {
	verb       string
	afterWrite []func(access.Response)
	// resultUnknown is true where the proxy cannot tell whether the write is a dry run.
	resultUnknown bool
	recorder      *responseRecorder
}

// reportWrite calls the observers' BeforeWrite if the request is a write and no dry run. The
// caller must call finish on the result.
func (p *Proxy) reportWrite(q *request) *writeReport {
	r := &writeReport{verb: q.info.Verb}
	if len(p.observers) == 0 || !q.writes() {
		return r
	}
	dryRun, known := q.isDryRun()
	if dryRun {
		return r
	}
	r.resultUnknown = !known // It may be no dry run, so it is reported.
	askForJSON(q.Header)
	for _, observer := range p.observers {
		r.afterWrite = append(r.afterWrite, observer.BeforeWrite(q.session, q.write()))
	}
	return r
}

// record returns a writer that records the response for the report.
func (r *writeReport) record(w http.ResponseWriter) http.ResponseWriter {
	if len(r.afterWrite) == 0 {
		return w
	}
	r.recorder = &responseRecorder{ResponseWriter: w}
	return r.recorder
}

// finish calls the observers with the response, or with the zero Response if it is unknown.
func (r *writeReport) finish() {
	if len(r.afterWrite) == 0 {
		return
	}
	var response access.Response
	if r.recorder != nil && !r.resultUnknown {
		response = r.recorder.response(r.verb)
	}
	for _, afterWrite := range r.afterWrite {
		afterWrite(response)
	}
}

// askForJSON makes the request ask for uncompressed JSON, which the proxy can read, if the client
// accepts JSON.
func askForJSON(header http.Header) {
	// Compression saves nothing on the loopback interface.
	header.Set("Accept-Encoding", "identity")
	if acceptsJSON(header.Values("Accept")) {
		header.Set("Accept", "application/json")
	}
}

func acceptsJSON(accept []string) bool {
	clauses := strings.Join(accept, ",")
	if strings.TrimSpace(clauses) == "" {
		return true
	}
	for clause := range strings.SplitSeq(clauses, ",") {
		mediaType, parameters, err := mime.ParseMediaType(clause)
		if err != nil || parameters["as"] != "" || strings.Trim(parameters["q"], "0.") == "" && parameters["q"] != "" {
			continue
		}
		switch mediaType {
		case "application/json", "application/*", "*/*":
			return true
		}
	}
	return false
}

// responseRecorder keeps a copy of the response that it writes to the client.
type responseRecorder struct {
	http.ResponseWriter

	code int
	body bytes.Buffer
	// truncated is true once the body is longer than maxResponseBytes. Nothing of it is kept.
	truncated bool
	// notUpstream is true where the proxy made the response, because the API server sent none.
	notUpstream bool
}

// Unwrap is for http.ResponseController.
func (r *responseRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (r *responseRecorder) WriteHeader(code int) {
	if r.code == 0 && code >= http.StatusOK {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

func (r *responseRecorder) Write(b []byte) (int, error) {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	if r.truncated = r.truncated || r.body.Len()+len(b) > maxResponseBytes; r.truncated {
		r.body = bytes.Buffer{}
	} else {
		r.body.Write(b)
	}
	return r.ResponseWriter.Write(b)
}

func (r *responseRecorder) response(verb string) access.Response {
	if r.notUpstream {
		return access.Response{}
	}
	response := access.Response{Code: r.code}
	response.Objects, response.UID = decodeResponse(verb, r.body.Bytes())
	return response
}

// decodeResponse returns the objects in a response's body, or the UID in a Status. It returns
// neither for a body that is not JSON, or not complete.
func decodeResponse(verb string, body []byte) ([]*unstructured.Unstructured, types.UID) {
	var object unstructured.Unstructured
	if object.UnmarshalJSON(body) != nil {
		return nil, ""
	}
	switch {
	case object.GetAPIVersion() == "v1" && object.GetKind() == "Status":
		uid, _, _ := unstructured.NestedString(object.Object, "details", "uid")
		return nil, types.UID(uid)
	case strings.HasPrefix(object.GetAPIVersion(), metav1.GroupName+"/"):
		return nil, "" // A Table or partial metadata, for which the client has asked.
	case verb != "deletecollection":
		return []*unstructured.Unstructured{&object}, ""
	}
	var list unstructured.UnstructuredList
	if list.UnmarshalJSON(body) != nil {
		return nil, ""
	}
	objects := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		objects[i] = &list.Items[i]
	}
	return objects, ""
}
