package operator

import (
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/ensign-operator/ensign/internal/ansible/content"
)

// Which kubernetes.core renders templates with ansible-core 2.19 and later, which is
// what every environment has.
const (
	kubernetesCore = "kubernetes.core"
	rendersSince   = "5.3.0"
)

// warnOfCollections tells of a collection that content gets and that is too old. One
// that requirements.yml pins and somebody has installed for the user comes before
// the environment's.
func warnOfCollections(log logr.Logger, trees []string) {
	found := content.FindCollection(kubernetesCore, trees...)
	if len(found) == 0 || !tooOld(found[0]) {
		return
	}
	values := []any{"collection", kubernetesCore, "version", found[0].Version, "path", found[0].Dir, "needed", rendersSince,
		"remedy", "raise its version in requirements.yml and install with --force, or remove it; see docs/howto-ansible-core-2.19.md"}
	for _, other := range found[1:] {
		if !tooOld(other) {
			values = append(values, "hides", other.Dir)
			break
		}
	}
	log.Info("WARNING: a collection is too old for this ansible-core: it does not render what `template:` names", values...)
}

// tooOld is false of a collection that says no version, as a checkout.
func tooOld(c content.InstalledCollection) bool {
	v, err := version.ParseSemantic(c.Version)
	return err == nil && v.LessThan(version.MustParseSemantic(rendersSince))
}
