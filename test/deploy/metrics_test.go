package deploy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ensign-operator/ensign/test/harness/site"
)

// reader makes an account with the role for whoever scrapes, and gives its token.
func reader(ctx context.Context, s *site.Site) string {
	prometheus := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "prometheus"}}
	s.Create(ctx, prometheus, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-reads-metrics"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ensign-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: s.Namespace, Name: prometheus.Name}},
	})
	return ground.Token(ctx, prometheus)
}

// scrape returns a function that reads the manager's metrics as Prometheus does by
// config/prometheus/monitor.yaml.
func scrape(s *site.Site, token string) func(context.Context) (string, error) {
	// As there: nobody has signed the endpoint's certificate.
	peer := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	return func(ctx context.Context) (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.MetricsAddress()+"/metrics", nil)
		if err != nil {
			return "", err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := peer.Do(request)
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(response.Body)
		if err = errors.Join(err, response.Body.Close()); err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("metrics: %s", response.Status)
		}
		return string(text), err
	}
}

// follows matches metrics that say that all changes of the resource are seen.
func follows(resource string) OmegaMatcher {
	return MatchRegexp(`ansible_operator_watched_kind\{[^}]*purpose="related",resource="%s",state="live"\} 1`, resource)
}
