package proxy_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
)

const deployer = "system:serviceaccount:ns:deployer"

// asDeployer starts a proxy with a run that acts as an account. names are those in which requests
// have reached the API server: forwarded ones, and those of the proxy itself.
func asDeployer(t *testing.T, config *rest.Config, options proxy.Options, denied func(access.Denial)) (run client, names func() []string) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			seen = append(seen, strings.Join(r.Header.Values("Impersonate-User"), "+"))
			mu.Unlock()
			return next.RoundTrip(r)
		})
	})
	kubeconfig, _, err := startWith(t, config, options).GrantSession(access.Session{Owner: owner(), Username: deployer, Denied: denied})
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, kubeconfig), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestNoRequestOfARunIsAnothersThanItsAccounts looks at every request that a run causes: what it
// asks for, what the proxy looks up for that, and what it writes before.
func TestNoRequestOfARunIsAnothersThanItsAccounts(t *testing.T) {
	for why, test := range map[string]struct {
		method, path, body string
		header             map[string]string
		least              int
	}{
		"a read":                           {"GET", configMap, "", nil, 1},
		"a creation, of a kind to look up": {"POST", "/api/v1/namespaces/ns/configmaps", `{"metadata":{"name":"c"}}`, nil, 2},
		"an update, with a look":           {"PUT", configMap, `{"metadata":{"name":"c"}}`, nil, 2},
		"an apply, with a write before it": {"PATCH", configMap + "?fieldManager=m", "metadata: {name: c}", map[string]string{"Content-Type": "application/apply-patch+yaml"}, 3},
		"a deletion":                       {"DELETE", configMap, "", nil, 1},
		"no resource":                      {"GET", "/version", "", nil, 1},
		"a connection that is upgraded":    {"GET", "/api/v1/namespaces/ns/pods/p/exec", "", map[string]string{"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}, 1},
		"a header that is to be removed":   {"GET", configMap, "", map[string]string{"X-Remote-User": "root", "Connection": "X-Remote-User"}, 1},
	} {
		t.Run(why, func(t *testing.T) {
			b := newBackend(t)
			b.live = map[string]string{configMap: `{"metadata":{"name":"c","ownerReferences":[{"apiVersion":"g.io/v1beta1","kind":"K","name":"cr","uid":"uid-1"}]}}`}
			run, names := asDeployer(t, b.config(), proxy.Options{InjectOwnerRef: true, IsConfined: func(access.Owner) bool { return true }}, nil)
			run.do(test.method, test.path, test.body, test.header)
			got := names()
			if len(got) < test.least || slices.ContainsFunc(got, func(name string) bool { return name != deployer }) || b.arrivals() != 1 {
				t.Errorf("want %d requests or more as %s, got %q", test.least, deployer, got)
			}
		})
	}
}

func TestARunWithAnAccountActsAsNobodyElse(t *testing.T) {
	for _, header := range []string{"Impersonate-User", "impersonate-group", "Impersonate-Uid", "Impersonate-Extra-A"} {
		b := newBackend(t)
		run, names := asDeployer(t, b.config(), proxy.Options{}, nil)
		for _, value := range []string{"root", deployer, ""} {
			code, answer := run.do("GET", "/api/v1/pods", "", map[string]string{header: value})
			if code != http.StatusForbidden || !strings.Contains(answer, deployer) || len(names()) > 0 {
				t.Errorf("%s: %q: want 403 with the reason, got %d %s", header, value, code, answer)
			}
		}
	}
	b := newBackend(t)
	config := b.config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "the-operator"}
	run, names := asDeployer(t, config, proxy.Options{}, nil)
	if code, answer := run.do("GET", "/api/v1/pods", "", nil); code != http.StatusForbidden || !strings.Contains(answer, "kubeconfig impersonates") || len(names()) > 0 {
		t.Errorf("a manager that is somebody else already: want 403, got %d %s", code, answer)
	}
}

func TestWhoseRightIsLacking(t *testing.T) {
	for message, want := range map[string]access.Denial{
		`configmaps is forbidden: User \"` + deployer + `\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"ns\"`:                {Username: deployer, Verb: "list", Resource: "configmaps", Namespace: "ns"},
		`serviceaccounts \"deployer\" is forbidden: User \"m\" cannot impersonate resource \"serviceaccounts\" in API group \"\" in the namespace \"ns\"`: {Verb: "impersonate", Resource: "serviceaccounts", Namespace: "ns"},
	} {
		b := newBackend(t)
		b.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","message":"`+message+`"}`)
		}
		denied := make(chan access.Denial, 9)
		run, _ := asDeployer(t, b.config(), proxy.Options{}, func(d access.Denial) { denied <- d })
		run.do("GET", "/api/v1/namespaces/ns/configmaps", "", nil)
		if len(denied) != 1 {
			t.Fatalf("%s: want one denial, got %d", message, len(denied))
		}
		if got := <-denied; got != want {
			t.Errorf("%s: got %+v", message, got)
		}
	}
}
