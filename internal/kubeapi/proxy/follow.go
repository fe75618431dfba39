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

// maxAnswerBytes is how much of an answer is kept to be read; a longer one is only
// known to have come.
const maxAnswerBytes = 8 << 20

// report tells followers of one write, and what the API server said to it.
type report struct {
	verb string
	told []func(access.Response)
	// unknowable is true where the answer does not tell what happened.
	unknowable bool
	heard      *listener
}

// follow tells the followers that the request is about to be forwarded, if it writes. The
// report must be finished.
func (p *Proxy) follow(q *request) *report {
	r := &report{verb: q.info.Verb}
	if len(p.observers) == 0 || !q.writes() {
		return r
	}
	dry, known := q.isDry()
	if dry {
		return r
	}
	r.unknowable = !known // Told all the same: it may be written.
	askForJSON(q.Header)
	for _, follower := range p.observers {
		r.told = append(r.told, follower.BeforeWrite(q.session, q.write()))
	}
	return r
}

// listen returns a writer of the answer that the report hears.
func (r *report) listen(w http.ResponseWriter) http.ResponseWriter {
	if len(r.told) == 0 {
		return w
	}
	r.heard = &listener{ResponseWriter: w}
	return r.heard
}

// finish tells the followers the answer, whatever has happened meanwhile.
func (r *report) finish() {
	if len(r.told) == 0 {
		return
	}
	var answer access.Response
	if r.heard != nil && !r.unknowable {
		answer = r.heard.answer(r.verb)
	}
	for _, answered := range r.told {
		answered(answer)
	}
}

// askForJSON narrows what the client accepts to what the proxy can read, if the client
// accepts it at all.
func askForJSON(header http.Header) {
	// The answer crosses the loopback interface only.
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

// listener keeps what passes through it to the client.
type listener struct {
	http.ResponseWriter

	code int
	body bytes.Buffer
	// cut is true once the answer is too long to be kept.
	cut bool
	// lost is true where the answer is not the API server's.
	lost bool
}

// Unwrap is for http.ResponseController.
func (l *listener) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (l *listener) WriteHeader(code int) {
	if l.code == 0 && code >= http.StatusOK {
		l.code = code
	}
	l.ResponseWriter.WriteHeader(code)
}

func (l *listener) Write(b []byte) (int, error) {
	if l.code == 0 {
		l.code = http.StatusOK
	}
	if l.cut = l.cut || l.body.Len()+len(b) > maxAnswerBytes; l.cut {
		l.body = bytes.Buffer{}
	} else {
		l.body.Write(b)
	}
	return l.ResponseWriter.Write(b)
}

func (l *listener) answer(verb string) access.Response {
	if l.lost {
		return access.Response{}
	}
	answer := access.Response{Code: l.code}
	answer.Objects, answer.UID = decodeAnswer(verb, l.body.Bytes())
	return answer
}

// decodeAnswer reads objects, or the UID in a Status. What it can't read is nothing:
// Protobuf, or half an answer.
func decodeAnswer(verb string, body []byte) ([]*unstructured.Unstructured, types.UID) {
	var object unstructured.Unstructured
	if object.UnmarshalJSON(body) != nil {
		return nil, ""
	}
	switch {
	case object.GetAPIVersion() == "v1" && object.GetKind() == "Status":
		uid, _, _ := unstructured.NestedString(object.Object, "details", "uid")
		return nil, types.UID(uid)
	case strings.HasPrefix(object.GetAPIVersion(), metav1.GroupName+"/"):
		return nil, "" // A Table or partial metadata, as the client wanted it.
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
