package operator

import (
	"context"
	"encoding/json"
	"fmt"

	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	chart "github.com/ensign-operator/ensign/internal/chart/engine"
	"github.com/ensign-operator/ensign/internal/chart/ledger"
	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/seal"
	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/leadership"
)

// newSealKeys returns the source of the keys with which the records of releases are sealed: a
// Secret in the manager's namespace. Where that namespace is not known, the keys are lost at the
// manager's end.
func newSealKeys(m *Manager) (chart.Keys, error) {
	namespace := leadership.Namespace(m.election)
	if namespace == "" {
		m.options.Logger.Info("outside of a pod the manager does not know its namespace, and cannot store the key by which it recognizes its releases: after a restart it upgrades each release once. Give --leader-election-namespace")
		return seal.Temporary(), nil
	}
	core, err := clientv1.NewForConfig(m.client)
	if err != nil {
		return nil, fmt.Errorf("prepare the keys of releases: %w", err)
	}
	store := &seal.Store{Secrets: core.Secrets(namespace), Name: m.recordName("seal")}
	return store.Keys, nil
}

// newLedger returns the store for the manager's knowledge of releases: ConfigMaps in its namespace,
// which every shard shares. If that namespace is not known, the store is lost at the manager's end,
// like the keys.
func newLedger(m *Manager) (*ledger.Store, error) {
	namespace := leadership.Namespace(m.election)
	if namespace == "" {
		return &ledger.Store{}, nil
	}
	core, err := clientv1.NewForConfig(m.client)
	if err != nil {
		return nil, fmt.Errorf("prepare the ledger of releases: %w", err)
	}
	return &ledger.Store{ConfigMaps: core.ConfigMaps(namespace), Namespace: namespace, Prefix: m.recordName("release")}, nil
}

// takeRevision notes a revision in the ledger, of which chart-exec reports before it writes its record.
func (c *components) takeRevision(ctx context.Context, owner access.Owner, body []byte) error {
	var r order.Revision
	if err := json.Unmarshal(body, &r); err != nil {
		return fmt.Errorf("read the report of a revision: %w", err)
	}
	return c.ledger.Report(ctx, order.Owner{Group: owner.GVK.Group, Kind: owner.GVK.Kind, Namespace: owner.Namespace, Name: owner.Name, UID: string(owner.UID)}, r)
}
