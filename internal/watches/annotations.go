package watches

import "strconv"

// The prefixes of the annotations with which a CR steers its own runs, by kind of content.
const (
	AnsibleAnnotations = "ansible.sdk.operatorframework.io/"
	ChartAnnotations   = "helm.sdk.operatorframework.io/"
)

// AnnotationPrefix returns the prefix of the annotations with which the watch's CRs steer
// their own runs.
func (w *Watch) AnnotationPrefix() string {
	if w.Chart != nil {
		return ChartAnnotations
	}
	return AnsibleAnnotations
}

// Annotations returns the names of all annotations of that prefix that mean something.
func (w *Watch) Annotations() []string {
	names := []string{"reconcile-period", "paused", "reconcile-requested-at", "abandon"}
	if w.Chart != nil {
		names = append(names, "upgrade-force", "rollback-force", "uninstall-wait", "install-disable-hooks", "upgrade-disable-hooks",
			"uninstall-disable-hooks", "install-description", "upgrade-description", "uninstall-description")
	} else {
		names = append(names, "max-runner-artifacts", "verbosity")
	}
	for i := range names {
		names[i] = w.AnnotationPrefix() + names[i]
	}
	return names
}

// Quoted quotes the text of an annotation for a message, and cuts it: it may have 256 KiB
// and must not fill the status.
func Quoted(text string) string {
	const limit = 64
	if len(text) > limit {
		return strconv.Quote(text[:limit]) + "…"
	}
	return strconv.Quote(text)
}
