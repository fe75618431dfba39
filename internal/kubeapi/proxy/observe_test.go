package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
)

// The observer hears of each request of a run once, with the code that the run gets, whoever answers.
func TestRequestsAreObserved(t *testing.T) {
	b := newBackend(t)
	b.answer = func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusConflict)
		}
		_, _ = io.WriteString(w, "{}") // With 200, where it says no other.
	}
	seen := make(chan string, 9)
	p := start(t, b, proxy.Options{
		IsConfined: func(access.Owner) bool { return true },
		ObserveRequest: func(s *access.Session, info *apirequest.RequestInfo) func(int) {
			return func(code int) {
				seen <- fmt.Sprintf("%s %s %s%s %d", s.Owner, info.Verb, info.Resource, info.Name, code)
			}
		},
	})
	run, _ := grant(t, p, owner())
	var got []string
	for _, request := range [][2]string{{"GET", "/api/v1/namespaces/ns/pods"}, {"DELETE", configMap}, {"POST", "/api/v1/namespaces/other/pods"}, {"GET", "/version"}} {
		run.do(request[0], request[1], "", nil)
		got = append(got, <-seen)
	}
	want := []string{"ns/cr list pods 200", "ns/cr delete configmapsc 409", "ns/cr create pods 403", "ns/cr get  200"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
