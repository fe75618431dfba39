//go:build long

package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
	"github.com/ensign-operator/ensign/test/harness/peak"
)

func TestPeakMemory(t *testing.T) {
	sends := func(contentType, begin, many, end string, size int) func() func() error {
		return func() func() error {
			backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/json")
				if resources, ok := discovery[r.URL.Path]; ok {
					_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","resources":[`+resources+`]}`)
				}
			}))
			t.Cleanup(backend.Close)
			p, err := proxy.New(&rest.Config{Host: backend.URL}, proxy.Options{InjectOwnerRef: true, Logger: logr.Discard()})
			if err != nil {
				t.Fatal(err)
			}
			kubeconfig, _, err := p.Grant(owner())
			if err != nil {
				t.Fatal(err)
			}
			body := begin + strings.Repeat(many, size/len(many)) + end
			request := httptest.NewRequest(http.MethodPost, "/api/v1/namespaces/ns/configmaps", strings.NewReader(body))
			request.Header.Set("Authorization", "Bearer "+tokenOf(t, kubeconfig))
			request.Header.Set("Content-Type", contentType)
			return func() error {
				answer := httptest.NewRecorder()
				p.ServeHTTP(answer, request)
				if answer.Code != http.StatusOK {
					return fmt.Errorf("%d: %.300s", answer.Code, answer.Body)
				}
				return nil
			}
		}
	}
	const begin = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"a":[`
	peak.Measure(t, []peak.Input{
		{Name: "request: most maps, JSON", MiB: 300, Make: sends("application/json", begin, `{"":0},`, `0]}`, 3<<20-100)},
		{Name: "request: most maps, YAML", MiB: 300, Make: sends("application/yaml", begin, `a: ,`, `0]}`, 4*249_900)},
		{Name: "request: more maps, YAML", MiB: 50, Refused: true, Make: sends("application/yaml", begin, `a: ,`, `0]}`, 3<<20-100)},
		{Name: "request: more", MiB: 20, Refused: true, Make: sends("application/json", begin, `{"":0},`, `0]}`, 3<<20)},
	})
}
