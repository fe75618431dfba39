package operator

import (
	"fmt"

	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	chart "github.com/ensign-operator/ensign/internal/chart/engine"
	"github.com/ensign-operator/ensign/internal/chart/seal"
	"github.com/ensign-operator/ensign/internal/config"
)

// newSealKeys returns the source of the keys with which the records of releases are sealed: a
// Secret in the manager's namespace. Where that namespace is not known, the keys are lost at the
// manager's end.
func newSealKeys(client *rest.Config, o config.Options) (chart.Keys, error) {
	namespace := managerNamespace(o)
	if namespace == "" {
		o.Logger.Info("after a restart each release is upgraded once: outside of a pod, --leader-election-namespace says where to keep the key by which the operator knows its own releases")
		return seal.Temporary(), nil
	}
	core, err := clientv1.NewForConfig(client)
	if err != nil {
		return nil, fmt.Errorf("prepare the keys of releases: %w", err)
	}
	store := &seal.Store{Secrets: core.Secrets(namespace), Name: recordName(o, "seal")}
	return store.Keys, nil
}
