// Package manifests reads what helm and kustomize render, so that both can be compared.
package manifests

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Objects are manifests by "KIND NAMESPACE/NAME".
type Objects map[string]map[string]any

// helmAdds are the labels and annotations that a chart's objects have and those of config/ do not.
var helmAdds = []string{ //nolint:gochecknoglobals // A table.
	"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/version", "helm.sh/chart", "helm.sh/resource-policy",
}

// Parse reads manifests, without what Helm adds, and without the namespace, which Helm does not
// manage. An object that stands twice in the text is an error.
func Parse(text string) (Objects, error) {
	found := Objects{}
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, document)
		}
		if len(object) == 0 || object["kind"] == "Namespace" {
			continue
		}
		clean(object)
		meta, _ := object["metadata"].(map[string]any)
		key := fmt.Sprint(object["kind"], " ", meta["namespace"], "/", meta["name"])
		if found[key] != nil {
			return nil, fmt.Errorf("%s stands twice", key)
		}
		found[key] = object
	}
	return found, nil
}

func clean(value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			clean(element)
		}
	case map[string]any:
		for _, key := range helmAdds {
			delete(value, key)
		}
		for key, field := range value {
			clean(field)
			if fields, is := field.(map[string]any); is && len(fields) == 0 && key == "annotations" {
				delete(value, key)
			}
		}
	}
}
