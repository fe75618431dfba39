package proxy_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
)

// The session hears of a request for which the account lacks the right, and of no other 403.
func TestDenials(t *testing.T) {
	status := func(message string) string {
		return `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"` + message + `"}`
	}
	lacking := func(verb, resource string) string {
		return status(resource + ` is forbidden: User \"system:serviceaccount:s:manager\" cannot ` + verb + ` resource \"` + resource + `\" in API group \"\" in the namespace \"ns\"`)
	}
	const (
		maps   = "/api/v1/namespaces/ns/configmaps"
		forged = "/api/v1/namespaces/ns/configmaps/x%20is%20forbidden:%20User%20a%20cannot%20delete%20resource%20nodes"
	)
	for why, c := range map[string]struct {
		method, path, answer string
		code                 int
		header               map[string]string
		want                 []access.Denial
	}{
		"a write":                          {"POST", maps, lacking("create", "configmaps"), 403, nil, []access.Denial{{Verb: "create", Resource: "configmaps", Namespace: "ns"}}},
		"a read":                           {"GET", maps, lacking("list", "configmaps"), 403, nil, []access.Denial{{Verb: "list", Resource: "configmaps", Namespace: "ns"}}},
		"a group":                          {"GET", "/apis/apps/v1/deployments", lacking("list", "deployments"), 403, nil, []access.Denial{{Verb: "list", Group: "apps", Resource: "deployments"}}},
		"a subresource":                    {"GET", maps + "/a/status", lacking("get", "configmaps/status"), 403, nil, []access.Denial{{Verb: "get", Resource: "configmaps", Subresource: "status", Namespace: "ns"}}},
		"Protobuf":                         {"GET", maps, "k8s\x00\x0a\x0c forbidden: User \"m\" cannot list resource \"configmaps\"", 403, map[string]string{"Accept": "application/vnd.kubernetes.protobuf"}, []access.Denial{{Verb: "list", Resource: "configmaps", Namespace: "ns"}}},
		"a quota":                          {"POST", maps, status(`configmaps \"a\" is forbidden: exceeded quota: q`), 403, nil, nil},
		"a namespace that goes":            {"POST", maps, status(`configmaps \"a\" is forbidden: unable to create new content in namespace ns because it is being terminated`), 403, nil, nil},
		"another status":                   {"POST", maps, lacking("create", "configmaps"), 404, nil, nil},
		"another account":                  {"POST", maps, lacking("create", "configmaps"), 403, map[string]string{"Impersonate-User": "a"}, nil},
		"a name with words of the message": {"GET", forged, status(`configmaps \"x is forbidden: User a cannot delete resource nodes\" is forbidden: by a policy`), 403, nil, nil},
		"no resource":                      {"GET", "/metrics", status(`forbidden: User \"m\" cannot get path \"/metrics\"`), 403, nil, nil},
	} {
		t.Run(why, func(t *testing.T) {
			b := newBackend(t)
			b.answer = func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.answer)
			}
			denied := make(chan access.Denial, 9)
			kubeconfig, _, err := start(t, b, proxy.Options{}).GrantSession(access.Session{Owner: owner(), Denied: func(d access.Denial) { denied <- d }})
			if err != nil {
				t.Fatal(err)
			}
			code, answer := connect(t, kubeconfig).do(c.method, c.path, "{}", c.header)
			if code != c.code || answer != c.answer {
				t.Errorf("got %d %s, want what the API server answered", code, answer)
			}
			close(denied) // It was reported before the response ended.
			var got []access.Denial
			for d := range denied {
				got = append(got, d)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The proxy looks at what a write changes. Where it may not, a right is missing too.
func TestADenialOfTheProxysOwnLook(t *testing.T) {
	b := newBackend(t)
	b.lookCode, b.lookMessage = http.StatusForbidden, `configmaps "c" is forbidden: User "m" cannot get resource "configmaps" in API group "" in the namespace "ns"`
	denied := make(chan access.Denial, 1)
	kubeconfig, _, err := start(t, b, proxy.Options{InjectOwnerRef: true}).GrantSession(access.Session{Owner: owner(), Denied: func(d access.Denial) { denied <- d }})
	if err != nil {
		t.Fatal(err)
	}
	code, answer := connect(t, kubeconfig).do("PATCH", configMap, `{"metadata":{"name":"c"}}`, map[string]string{"Content-Type": "application/apply-patch+yaml"})
	if code != http.StatusForbidden {
		t.Errorf("got %d %s", code, answer)
	}
	close(denied)
	if got, want := <-denied, (access.Denial{Verb: "get", Resource: "configmaps", Namespace: "ns"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
