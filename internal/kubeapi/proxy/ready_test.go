package proxy_test

import (
	"fmt"
	"maps"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
)

// Each condition Ready that a run writes to its CR's status is reported, in every format of a patch, and no
// other. The API server gets the body as it was sent.
func TestAReadyOfARun(t *testing.T) {
	const cr, ready = "/apis/g.io/v1/namespaces/ns/ks/cr", "map[observedGeneration:3 status:True type:Ready]"
	const condition = `{"type":"Ready","status":"True","observedGeneration":3}`
	typed := map[string]string{"Ensign-Condition-Types": "Available,Ready"}
	for why, c := range map[string]struct {
		method, path, format, body string
		header                     map[string]string
		want                       []string
	}{
		"a merge patch":                {"PATCH", cr + "/status", "application/merge-patch+json", `{"status":{"conditions":[{"type":"Other","status":"True"},` + condition + `]}}`, nil, []string{ready}},
		"a JSON patch":                 {"PATCH", cr + "/status", "application/json-patch+json", `[{"op":"add","path":"/status/conditions/-","value":` + condition + `}]`, nil, []string{ready}},
		"an apply in YAML":             {"PATCH", cr + "/status", "application/apply-patch+yaml", "status:\n  conditions:\n  - type: Ready\n    status: \"True\"\n    observedGeneration: 3\n", nil, []string{ready}},
		"an update":                    {"PUT", cr + "/status", "application/json", `{"metadata":{"name":"cr"},"status":{"conditions":[` + condition + `]}}`, nil, []string{ready}},
		"what k8s_status says":         {"GET", cr, "application/json", "", typed, []string{"map[type:Ready]"}},
		"another condition":            {"PATCH", cr + "/status", "application/merge-patch+json", `{"status":{"conditions":[{"type":"NotReady","status":"True"}]}}`, nil, nil},
		"another object":               {"PATCH", "/apis/g.io/v1/namespaces/ns/ks/other/status", "application/merge-patch+json", `{"status":{"conditions":[` + condition + `]}}`, nil, nil},
		"not its status":               {"PATCH", cr, "application/merge-patch+json", `{"spec":{"conditions":[` + condition + `]}}`, nil, nil},
		"another object of k8s_status": {"GET", "/apis/g.io/v1/namespaces/ns/ks/other", "application/json", "", typed, nil},
		"a body that nobody can read":  {"PATCH", cr + "/status", "application/merge-patch+json", `{"Ready`, nil, nil},
	} {
		t.Run(why, func(t *testing.T) {
			b := newBackend(t)
			var got []string
			kubeconfig, _, err := start(t, b, proxy.Options{}).GrantSession(access.Session{
				Owner: owner(), Generation: 3, Ready: func(c map[string]any) { got = append(got, fmt.Sprint(c)) },
			})
			if err != nil {
				t.Fatal(err)
			}
			header := map[string]string{"Content-Type": c.format}
			maps.Copy(header, c.header)
			if code, _ := connect(t, kubeconfig).do(c.method, c.path, c.body, header); code >= http.StatusInternalServerError {
				t.Errorf("got %d", code)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			r := b.since(0)[0] // Without looks.
			if b.bodies[0] != c.body || r.Header.Get("Ensign-Condition-Types") != "" {
				t.Errorf("the API server got %s %v", b.bodies[0], r.Header)
			}
		})
	}
}
