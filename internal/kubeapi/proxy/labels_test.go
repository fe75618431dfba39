package proxy_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
)

func TestWritesCarryTheLabelsOfTheirRun(t *testing.T) {
	const live = `{"metadata":{"name":"c","namespace":"ns","labels":{"a":"b","g.io/l":"v"}}}`
	for name, test := range map[string]struct {
		method, path, contentType, body string
		want                            string
	}{
		"a POST":                      {"POST", "/api/v1/namespaces/ns/configmaps", "application/json", `{"metadata":{"name":"c"}}`, `{"metadata":{"name":"c","labels":{"g.io/l":"v"}}}`},
		"an apply":                    {"PATCH", configMap, "application/apply-patch+yaml", `{"metadata":{"name":"c"}}`, `{"metadata":{"name":"c","labels":{"g.io/l":"v"}}}`},
		"a dry run":                   {"PATCH", configMap + "?dryRun=All", "application/apply-patch+yaml", `{"metadata":{"name":"c"}}`, `{"metadata":{"name":"c","labels":{"g.io/l":"v"}}}`},
		"a patch that takes it away":  {"PATCH", configMap, "application/merge-patch+json", `{"metadata":{"labels":null}}`, `{"metadata":{"labels":{"a":null}}}`},
		"not a write of a status":     {"PATCH", configMap + "/status", "application/merge-patch+json", `{"metadata":{"labels":null}}`, `{"metadata":{"labels":null}}`},
		"nor the CR":                  {"PATCH", "/apis/g.io/v1/namespaces/ns/ks/cr", "application/apply-patch+yaml", `{"metadata":{"name":"cr"}}`, `{"metadata":{"name":"cr"}}`},
		"nor a record of the release": {"POST", "/api/v1/namespaces/ns/secrets", "application/json", `{"metadata":{"name":"sh.helm.release.v1.r.v1"}}`, `{"metadata":{"name":"sh.helm.release.v1.r.v1"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t)
			b.live = map[string]string{configMap: live}
			// Labels do not depend on owners.
			kubeconfig, _, err := start(t, b, proxy.Options{}).GrantSession(access.Session{Owner: owner(), Labels: map[string]string{"g.io/l": "v"}})
			if err != nil {
				t.Fatal(err)
			}
			if code, answer := connect(t, kubeconfig).do(test.method, test.path, test.body, map[string]string{"Content-Type": test.contentType}); code != http.StatusOK {
				t.Fatalf("got %d %s", code, answer)
			}
			if diff := cmp.Diff(decode(t, test.want), decode(t, b.bodies[0])); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}
