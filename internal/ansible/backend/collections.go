package backend

import (
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/ensign-operator/ensign/internal/ansible/files"
	"github.com/ensign-operator/ensign/internal/docslink"
)

// kubernetes.core renders templates with ansible-core 2.19 and later since minVersion. The
// manager refuses an older ansible-core.
const (
	kubernetesCore = "kubernetes.core"
	minVersion     = "5.3.0"
)

// warnOfOldCollection logs a warning if the kubernetes.core that content gets is too old.
// One in ~/.ansible/collections, where a pin in requirements.yml installs it, comes before
// the one of the Python environment.
func warnOfOldCollection(log logr.Logger, trees []string) {
	found := files.FindCollection(kubernetesCore, trees...)
	if len(found) == 0 || !isTooOld(found[0]) {
		return
	}
	values := []any{"collection", kubernetesCore, "version", found[0].Version, "path", found[0].Dir, "needed", minVersion,
		"remedy", "raise its version in requirements.yml and install with --force, or remove it; see " + docslink.AnsibleCore.URL()}
	for _, other := range found[1:] {
		if !isTooOld(other) {
			values = append(values, "hides", other.Dir)
			break
		}
	}
	log.Info("WARNING: a collection is too old for this ansible-core: its modules do not render the files of the option template", values...)
}

// isTooOld reports whether the collection is older than minVersion. A collection without a
// version, such as a checkout, is not.
func isTooOld(c files.InstalledCollection) bool {
	v, err := version.ParseSemantic(c.Version)
	return err == nil && v.LessThan(version.MustParseSemantic(minVersion))
}
