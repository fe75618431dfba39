package release

import (
	"context"
	"errors"
	"fmt"

	helm "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

// Release is a revision as Helm keeps it.
type Release = helm.Release

// Read returns the revisions of a release, live from the API server, and the last of them;
// nil if there is none.
func Read(ctx context.Context, config *rest.Config, namespace, name string) (history []Revision, last *Release, err error) {
	client, err := corev1.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("read release %q: %w", name, err)
	}
	found, err := driver.NewSecrets(secretsWithContext{client.Secrets(namespace), ctx}).Query(map[string]string{"name": name, "owner": "helm"})
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read release %q: %w", name, err)
	}
	for _, one := range found {
		r, ok := one.(*Release)
		if !ok || r.Info == nil {
			return nil, nil, fmt.Errorf("read release %q: a revision has a form that is not known", name)
		}
		revision := Revision{Version: r.Version, Status: r.Info.Status.String(), Digest: r.Labels[order.DigestLabel]}
		if r.Chart != nil {
			revision.Chart = r.Chart.Name()
		}
		history = append(history, revision)
		if last == nil || r.Version > last.Version {
			last = r
		}
	}
	return history, last, nil
}
