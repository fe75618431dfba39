package proxy_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
)

// The API server may answer before it has read a request's body, and of some requests it
// reads none. An HTTP/1 server closes a body when its handler begins to answer, unless
// told otherwise, and with it the stream to the API server would end.
func TestAnAnswerThatBeginsBeforeTheBodyIsReadIsWhole(t *testing.T) {
	const window = 64 << 10
	backend := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "the end")
	}))
	backend.EnableHTTP2 = true
	backend.Config.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerConnection: window, MaxReceiveBufferPerStream: window}
	backend.StartTLS()
	t.Cleanup(backend.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: backend.Certificate().Raw})
	p := startWith(t, &rest.Config{Host: backend.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, proxy.Options{})
	c, revoke := grant(t, p, owner())
	t.Cleanup(revoke)
	code, text := c.do(http.MethodGet, "/api/v1/namespaces/ns/configmaps", strings.Repeat("x", 3*window), nil)
	if code != http.StatusOK || text != "the end" {
		t.Errorf("got %d and %q", code, text)
	}
}

// Of these requests nobody has read the body when the answer is through. What is left of
// it must not be read beside the next request of the connection: the server would panic,
// and the client would see the connection end.
func TestAConnectionGoesOnAfterABodyThatNobodyRead(t *testing.T) {
	backend := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "the end")
	}))
	backend.EnableHTTP2 = true
	backend.StartTLS()
	t.Cleanup(backend.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: backend.Certificate().Raw})
	p := startWith(t, &rest.Config{Host: backend.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, proxy.Options{})
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			c, revoke := grant(t, p, owner())
			defer revoke()
			for range 1000 {
				// A client asks again by itself after a GET that failed, but not after a PUT.
				code, text := c.do(http.MethodPut, "/api/v1/namespaces/ns/configmaps/a", "null", nil)
				if code != http.StatusOK || text != "the end" {
					t.Errorf("got %d and %q", code, text)
					return
				}
			}
		})
	}
	clients.Wait()
}
