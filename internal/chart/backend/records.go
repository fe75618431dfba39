package backend

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/ensign-operator/ensign/internal/chart/engine"
	"github.com/ensign-operator/ensign/internal/chart/ledger"
	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/seal"
	"github.com/ensign-operator/ensign/internal/kubeapi/access"
)

// Records are the ledger of releases and the keys of their seals. They are kept in the namespace of the manager, which every shard of the operator shares. If that
// namespace is not known, they are lost at the manager's end.
type Records struct {
	client            *rest.Config
	namespace, prefix string
	// ledger has the known releases, and is empty at first.
	ledger *ledger.Store
}

// NewRecords returns the Records of a manager. client reaches the API server, behind the fence. namespace
// is the manager's own, "" if it is not known, and prefix begins the names of the records there.
func NewRecords(client *rest.Config, namespace, prefix string) (*Records, error) {
	r := &Records{client: client, namespace: namespace, prefix: prefix, ledger: &ledger.Store{}}
	if namespace == "" {
		return r, nil
	}
	core, err := clientv1.NewForConfig(client)
	if err != nil {
		return nil, fmt.Errorf("prepare the ledger of releases: %w", err)
	}
	r.ledger = &ledger.Store{ConfigMaps: core.ConfigMaps(namespace), Namespace: namespace, Prefix: prefix + "release"}
	return r, nil
}

// CRs returns the CRs of the kind for which the ledger has an entry.
func (r *Records) CRs(ctx context.Context, kind schema.GroupKind) (map[types.NamespacedName]types.UID, error) {
	return r.ledger.CRs(ctx, kind)
}

// ReportPath is the path at the API proxy at which chart-exec reports a revision.
const ReportPath = order.ReportPath

// Report notes a revision in the ledger, of which chart-exec reports before it writes its record.
func (r *Records) Report(ctx context.Context, owner access.Owner, body []byte) error {
	var revision order.Revision
	if err := json.Unmarshal(body, &revision); err != nil {
		return fmt.Errorf("read the report of a revision: %w", err)
	}
	return r.ledger.Report(ctx, order.Owner{Group: owner.GVK.Group, Kind: owner.GVK.Kind, Namespace: owner.Namespace, Name: owner.Name, UID: string(owner.UID)}, revision)
}

// keys returns the source of the keys with which the records of releases are sealed: a Secret.
func (r *Records) keys(log logr.Logger) (engine.Keys, error) {
	if r.namespace == "" {
		log.Info("outside of a pod the manager does not know its namespace, and cannot store the key by which it recognizes its releases: after a restart it upgrades each release once. Give --leader-election-namespace")
		return seal.Temporary(), nil
	}
	core, err := clientv1.NewForConfig(r.client)
	if err != nil {
		return nil, fmt.Errorf("prepare the keys of releases: %w", err)
	}
	store := &seal.Store{Secrets: core.Secrets(r.namespace), Name: r.prefix + "seal"}
	return store.Keys, nil
}
