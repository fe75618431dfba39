package apiproxy

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Rule says which requests a fault meets, until it is removed. The first rule that
// matches a request acts on it.
type Rule struct {
	// Match sees the request as it arrived, the body of a write included.
	Match func(Request) bool
	// Once lets the rule act on one request only.
	Once  bool
	Fault Fault
}

// Fault is what happens to a request. The zero value is none.
type Fault struct {
	// Before is called first; the request waits for its return.
	Before func(Request)
	// Delay passes before the request goes on.
	Delay time.Duration
	// Withhold keeps the request from the API server. It needs a Break or a Code.
	Withhold bool
	// After is called before the client gets its answer, which waits for it. The
	// request has the API server's answer.
	After func(Request)
	// Break breaks the connection in the place of an answer. Where the API server has
	// acted, the client cannot know the result of its request.
	Break bool
	// Code is the HTTP status of an answer in the place of the API server's; 0 leaves
	// that as it is. Body is JSON; nil is the Status object for the Code.
	Code int
	Body []byte
}

// Refuse answers with an HTTP status and keeps the request from the API server.
func Refuse(code int) Fault { return Fault{Withhold: true, Code: code} }

// Add puts a rule behind those that are there.
func (p *Proxy) Add(rule Rule) (remove func()) {
	p.locked(func() { p.rules = append(p.rules, &rule) })
	return func() {
		p.locked(func() { p.rules = slices.DeleteFunc(p.rules, func(r *Rule) bool { return r == &rule }) })
	}
}

func (p *Proxy) meet(r Request) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.rules, func(rule *Rule) bool { return rule.Match(r) })
	if i < 0 {
		return Fault{}
	}
	rule := p.rules[i]
	if rule.Once {
		p.rules = slices.Delete(p.rules, i, i+1)
	}
	return rule.Fault
}

// answer is what the client gets in the place of the API server's answer.
func (f Fault) answer() *http.Response {
	body, header := f.Body, http.Header{"Content-Type": {"application/json"}}
	if body == nil {
		const why = "a fault that a test asked for"
		status := apierrors.NewGenericServerResponse(f.Code, "", schema.GroupResource{}, "", why, 0, false).ErrStatus
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		if f.Code == http.StatusGone {
			status.Reason = metav1.StatusReasonExpired
		}
		body, _ = json.Marshal(status) // Plain values always encode.
	}
	if f.Code == http.StatusTooManyRequests {
		header.Set("Retry-After", "1")
	}
	return &http.Response{StatusCode: f.Code, Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}
}
