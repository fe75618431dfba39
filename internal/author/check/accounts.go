package check

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/rights"
)

// accountsMayDo adds, for each sample whose runs use the API in the name of a service account, the
// rights that its runs need and the account does not have. A sample without a namespace is asked
// about in the first that the operator watches, or in "default", where kubectl would put it.
func (p *Project) accountsMayDo(ctx context.Context, c Cluster) error {
	namespaces := append(slices.Clone(c.Namespaces), "default")
	for _, u := range p.Units {
		account := u.Watch.ServiceAccount
		if u.Finalizing || !account.IsSet() {
			continue
		}
		needs := rights.Collector{CRDs: p.CRDs}
		needs.Unit(u.Unit, u.Index)
		u.backend.needs(&needs, u)
		for _, sample := range p.samplesRead {
			if sample.gvk != u.Watch.GVK || sample.object == nil {
				continue
			}
			cr := (&unstructured.Unstructured{Object: sample.object}).DeepCopy()
			cr.SetNamespace(cmp.Or(cr.GetNamespace(), namespaces[0]))
			username, err := account.Username(cr, "")
			if err != nil {
				p.add(finding{"account", report.Error, sample.at(account.Path.String()), err.Error(), "the resource gets a Failure, and nothing runs", "name an account of the resource's namespace"})
				continue
			}
			if err := p.accountMayDo(ctx, c.Config, sample, username, cr.GetNamespace(), needs.Accounts); err != nil {
				return err
			}
		}
	}
	return nil
}

// accountMayDo asks the API server in the name of the account.
func (p *Project) accountMayDo(ctx context.Context, config *rest.Config, sample *customResource, username, namespace string, needs []rights.Need) error {
	config = rest.CopyConfig(config)
	config.QPS, config.Impersonate.UserName = -1, username
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("use the kubeconfig: %w", err)
	}
	lacking := map[string]bool{}
	for _, need := range needs {
		may, err := mayI(ctx, client, need.Right, namespace)
		if apierrors.IsForbidden(err) {
			p.add(finding{
				"account", report.Info, sample.at("metadata"), "whether " + username + " has the rights of its runs was not asked: " + err.Error(),
				"the kubeconfig's account may not act as another", "use that of an administrator, or kubectl auth can-i --as",
			})
			return nil
		}
		if err != nil {
			return err
		}
		if !may {
			lacking[need.Right.String()] = true
		}
	}
	if len(lacking) > 0 {
		p.add(finding{
			"no-right", report.Error, sample.at("metadata"), username + " may not, in " + namespace + ": " + strings.Join(slices.Sorted(maps.Keys(lacking)), ", "),
			"the runs of this sample use the API in its name, and the API server answers with 403", "bind the role for accounts that rbac prints to it, in that namespace",
		})
	}
	return nil
}
