package proxy

import (
	"bytes"
	"mime"
	"net/http"
	"strings"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
)

// maxResponseBytes bounds the body of a response that is decoded. The result of a longer one is
// not known.
const maxResponseBytes = 8 << 20

// writeReport reports one write to the observers, and the API server's response.
type writeReport struct {
	verb       string
	afterWrite []func(access.Response)
	// unreadableOptions is true where the proxy cannot tell whether the write is a dry run.
	unreadableOptions bool
	recorder          *responseRecorder
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
	r.unreadableOptions = !known // It may be no dry run, so it is reported.
	askForJSON(q.Header)
	for _, observer := range p.observers {
		r.afterWrite = append(r.afterWrite, observer.BeforeWrite(q.session, q.write()))
	}
	return r
}

func (r *writeReport) record(w http.ResponseWriter) http.ResponseWriter {
	if len(r.afterWrite) == 0 {
		return w
	}
	r.recorder = &responseRecorder{ResponseWriter: w}
	return r.recorder
}

// refuse responds to a request that is not forwarded.
func (r *writeReport) refuse(w http.ResponseWriter, err error) {
	w = r.record(w)
	if r.recorder != nil {
		r.recorder.refused = true
	}
	refuse(w, err)
}

// finish calls the observers with the response.
func (r *writeReport) finish() {
	if len(r.afterWrite) == 0 {
		return
	}
	response := access.Response{Unknown: access.NoResponse}
	if r.recorder != nil {
		response = r.recorder.response(r.verb)
	}
	if r.unreadableOptions && response.OK() {
		response = access.Response{Code: response.Code, Unknown: access.UnreadableOptions}
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
	// refused is true where the proxy made the response and did not forward the request.
	refused bool
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
	response := access.Response{Code: r.code}
	switch {
	case r.refused:
		return response
	case r.notUpstream, r.code == 0:
		return access.Response{Unknown: access.NoResponse}
	case r.code >= http.StatusInternalServerError:
		response.Unknown = access.ServerError
		return response
	case !response.OK():
		return response
	}
	if err := decodeResponse(verb, r.Header().Get("Content-Type"), r.body.Bytes(), &response); err != nil {
		response = access.Response{Code: r.code, Unknown: access.UnreadableResponse}
	}
	return response
}
