package operator

import (
	"fmt"

	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	chart "github.com/ensign-operator/ensign/internal/chart/engine"
	"github.com/ensign-operator/ensign/internal/chart/seal"
)

// newSealKeys returns the source of the keys with which the records of releases are sealed: a
// Secret in the manager's namespace. Where that namespace is not known, the keys are lost at the
// manager's end.
func newSealKeys(m *Manager) (chart.Keys, error) {
	namespace := m.ownNamespace()
	if namespace == "" {
		m.options.Logger.Info("after a restart each release is upgraded once: outside of a pod, the namespace for the lease says where to keep the key by which the operator knows its own releases")
		return seal.Temporary(), nil
	}
	core, err := clientv1.NewForConfig(m.client)
	if err != nil {
		return nil, fmt.Errorf("prepare the keys of releases: %w", err)
	}
	store := &seal.Store{Secrets: core.Secrets(namespace), Name: m.recordName("seal")}
	return store.Keys, nil
}
