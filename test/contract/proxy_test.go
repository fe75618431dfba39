package contract

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/ensign-operator/ensign/test/harness"
)

// freePort returns a port of the loopback interface that nobody listens at.
func freePort() string {
	GinkgoHelper()
	address, err := harness.FreeAddress()
	Expect(err).NotTo(HaveOccurred())
	_, port, err := net.SplitHostPort(address)
	Expect(err).NotTo(HaveOccurred())
	return port
}

func proxyRows(w *work) {
	row("§8 address", "127.0.0.1, TLS with the kubeconfig's CA, the same for all runs", func() {
		server, err := url.Parse(w.box.Config.Host)
		Expect(err).NotTo(HaveOccurred())
		Expect(server.Scheme + "://" + server.Hostname()).To(Equal("https://127.0.0.1"))
		Expect(w.box.Config.TLSClientConfig).To(And(HaveField("Insecure", false), HaveField("CAData", Not(BeEmpty()))))
		Expect(w.tank.Config.Host).To(Equal(w.box.Config.Host))
	})
	row("§8 token", "256 bits, another for each run, in a file of mode 0600", func() {
		Expect(w.box.Config.BearerToken).NotTo(Equal(w.tank.Config.BearerToken))
		Expect(base64.RawURLEncoding.DecodeString(w.box.Config.BearerToken)).To(HaveLen(256 / 8))
		info, err := os.Stat(w.box.kubeconfig()) // The run kept the mode.
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode()).To(Equal(os.FileMode(0o600)))
	})
	row("§8 without a token", "401", func(ctx context.Context) {
		for _, token := range []string{"", "wrong", w.box.Config.BearerToken + "x"} {
			stranger := *w.box
			config := rest.AnonymousClientConfig(w.box.Config)
			config.BearerToken = token
			var err error
			stranger.HTTP, err = rest.HTTPClientFor(config)
			Expect(err).NotTo(HaveOccurred())
			code, _ := stranger.Ask(ctx, http.MethodGet, configMaps(w.Namespace), nil)
			Expect(code).To(Equal(http.StatusUnauthorized))
		}
	})
	row("§8 identity", "a token acts for its run and as the manager, unless the request asks for another account", func(ctx context.Context) {
		claims := []string{"X-Remote-User", "tank"}
		child := w.box.Do(ctx, http.MethodPost, configMaps(w.Namespace), configMap("claimed", "1"), claims...)
		Expect(w.box.marks(child)).To(Equal("reference"))
		review := map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
		who := func(claims ...string) string {
			self := w.box.Do(ctx, http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, claims...)
			name, _, err := unstructured.NestedString(self.Object, "status", "userInfo", "username")
			Expect(err).NotTo(HaveOccurred())
			return name
		}
		Expect(who(claims...)).NotTo(Or(BeEmpty(), Equal("tank"), HavePrefix("system:anonymous")))
		weak := []string{"Impersonate-User", "weak"}
		Expect(who(append(claims, weak...)...)).To(Equal("weak"))
		code, refused := w.box.Ask(ctx, http.MethodPost, configMaps(w.Namespace), configMap("weak", "1"), weak...)
		Expect(code).To(Equal(http.StatusForbidden))
		Expect(refused.Object["message"]).To(ContainSubstring(`User "weak" cannot create`))
	})
	row("§8 own writes", "show at once, in lists too", func(ctx context.Context) {
		for i := range 50 {
			value := fmt.Sprint(i)
			w.box.Do(ctx, http.MethodPut, configMaps(w.Namespace, "near"), configMap("near", value))
			one := w.box.Do(ctx, http.MethodGet, configMaps(w.Namespace, "near"), nil)
			Expect(one.Object).To(HaveKeyWithValue("data", HaveKeyWithValue("a", value)))
			all, err := w.box.Do(ctx, http.MethodGet, configMaps(w.Namespace), nil).ToList()
			Expect(err).NotTo(HaveOccurred())
			Expect(all.Items).To(ContainElement(HaveField("Object", HaveKeyWithValue("data", HaveKeyWithValue("a", value)))))
		}
	})
	row("§8 confineToNamespace, §1 confineToNamespace", "403 with a reason elsewhere", func(ctx context.Context) {
		w.fenced.Do(ctx, http.MethodPost, configMaps(w.Namespace), configMap("inside", "1"))
		for path, body := range map[string]any{
			configMaps("default"):                             configMap("outside", "1"),
			"/apis/rbac.authorization.k8s.io/v1/clusterroles": clusterRole("outside"),
		} {
			code, refused := w.fenced.Ask(ctx, http.MethodPost, path, body)
			Expect(code).To(Equal(http.StatusForbidden))
			Expect(refused.Object["message"]).To(ContainSubstring("confine"))
		}
	})
	row("§8 --proxy-open-port, §2 --proxy-open-port", "serves without TLS and token, and warns", func(ctx context.Context) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+w.openPort+configMaps(w.Namespace, "near"), nil)
		Expect(err).NotTo(HaveOccurred())
		response, err := http.DefaultClient.Do(request)
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.StatusCode).To(Equal(http.StatusOK))
		Expect(string(text)).To(ContainSubstring(`"near"`))
		Expect(w.Log()).To(ContainSubstring("without a token (Options.ProxyOpenPort)"))
	})
}
