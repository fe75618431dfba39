package apiproxy

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Always is the Times of a rule that acts until it is removed.
const Always = -1

// Rule says which requests a fault meets. The first rule that matches a request
// acts on it; rules that skip it have not matched.
type Rule struct {
	// Name stands in the journal.
	Name string
	// Match sees the request as it arrived, the body of a write included.
	Match func(Request) bool
	// Skip lets so many matching requests pass first.
	Skip int
	// Times is how many requests the rule acts on then; 0 means one.
	Times int
	Fault Fault
}

// Fault is what happens to a request. The zero value is none.
type Fault struct {
	// Before is called first; the request waits for its return.
	Before func(Request)
	// Delay passes before the request goes on, unless the client gives up.
	Delay time.Duration
	// Withhold keeps the request from the API server.
	Withhold bool
	// After is called before the client gets its answer, which waits for it. What
	// the API server answered is in the request.
	After func(Request)
	// Answer replaces the API server's; nil leaves that as it is. A request that is
	// withheld needs one.
	Answer *Answer
}

// Answer is what a client gets.
type Answer struct {
	// Code is the HTTP status. 0 breaks the connection instead.
	Code int
	// RetryAfter is sent as a header, in whole seconds; 0 sends none.
	RetryAfter time.Duration
	// Body is JSON. nil with a Code of 400 or more is a Status object for it.
	Body []byte
}

// Refuse answers with an HTTP status and keeps the request from the API server.
func Refuse(code int) Fault { return Fault{Withhold: true, Answer: &Answer{Code: code}} }

// Throttle answers 429 and tells the client when to come again.
func Throttle(after time.Duration) Fault {
	return Fault{Withhold: true, Answer: &Answer{Code: http.StatusTooManyRequests, RetryAfter: after}}
}

// Reset breaks the connection and keeps the request from the API server.
func Reset() Fault { return Fault{Withhold: true, Answer: &Answer{}} }

// Expire answers 504 after a while and keeps the request from the API server.
func Expire(after time.Duration) Fault {
	return Fault{Delay: after, Withhold: true, Answer: &Answer{Code: http.StatusGatewayTimeout}}
}

// LoseAnswer lets the API server act and breaks the connection then: the client
// cannot know what became of its request.
func LoseAnswer() Fault { return Fault{Answer: &Answer{}} }

// Reply answers for the API server, for example with an object as it was.
func Reply(body []byte) Fault {
	return Fault{Withhold: true, Answer: &Answer{Code: http.StatusOK, Body: body}}
}

// rules are those of a proxy, in the order in which they were added.
type rules struct {
	mu      sync.Mutex
	ordered []*countedRule
}

type countedRule struct {
	Rule

	matched int
}

func (rs *rules) add(rule Rule) (remove func()) {
	if rule.Times == 0 {
		rule.Times = 1
	}
	added := &countedRule{Rule: rule}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.ordered = append(rs.ordered, added)
	return func() {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		rs.ordered = slices.DeleteFunc(rs.ordered, func(r *countedRule) bool { return r == added })
	}
}

// meet returns the rule that acts on the request, nil if none does.
func (rs *rules) meet(r Request) *Rule {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, rule := range rs.ordered {
		spent := rule.Times != Always && rule.matched >= rule.Skip+rule.Times
		if spent || !rule.Match(r) {
			continue
		}
		if rule.matched++; rule.matched > rule.Skip {
			return &rule.Rule
		}
	}
	return nil
}

// Add puts a rule behind those that are there.
func (p *Proxy) Add(rule Rule) (remove func()) { return p.rules.add(rule) }

// reply answers for the API server.
func (p *Proxy) reply(w http.ResponseWriter, entry *Request, answer Answer) {
	if answer.Code == 0 {
		panic(http.ErrAbortHandler)
	}
	p.journal.update(func() { entry.Code = answer.Code })
	maps.Copy(w.Header(), answer.header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.body()) // A client that is gone needs none.
}

// replace puts an answer in the place of the API server's.
func replace(response *http.Response, answer Answer) {
	_ = response.Body.Close()
	body := answer.body()
	response.StatusCode, response.Status = answer.Code, ""
	response.Header = answer.header()
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}

func (a Answer) header() http.Header {
	header := http.Header{"Content-Type": {"application/json"}}
	if a.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(a.RetryAfter/time.Second)))
	}
	return header
}

func (a Answer) body() []byte {
	if a.Body != nil || a.Code < http.StatusBadRequest {
		return a.Body
	}
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Message:  "a fault that a test asked for: " + http.StatusText(a.Code),
		Reason:   reasonOf(a.Code),
		Code:     int32(a.Code),
	})
	if err != nil {
		panic(err) // Plain values always encode.
	}
	return body
}

// reasonOf is the reason that an API server gives for the HTTP status.
func reasonOf(code int) metav1.StatusReason {
	switch code {
	case http.StatusConflict:
		return metav1.StatusReasonConflict
	case http.StatusTooManyRequests:
		return metav1.StatusReasonTooManyRequests
	case http.StatusInternalServerError:
		return metav1.StatusReasonInternalError
	case http.StatusServiceUnavailable:
		return metav1.StatusReasonServiceUnavailable
	case http.StatusGatewayTimeout:
		return metav1.StatusReasonTimeout
	case http.StatusGone:
		return metav1.StatusReasonExpired
	case http.StatusForbidden:
		return metav1.StatusReasonForbidden
	case http.StatusNotFound:
		return metav1.StatusReasonNotFound
	case http.StatusUnprocessableEntity:
		return metav1.StatusReasonInvalid
	default:
		return metav1.StatusReasonUnknown
	}
}
