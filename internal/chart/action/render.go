package action

import (
	"bytes"
	"fmt"
	"strings"

	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/postrenderer"
	"sigs.k8s.io/kustomize/kyaml/kio"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

// labeler is a post-renderer that labels each object with the chart.
type labeler struct{ value string }

// labeler returns the post-renderer for the chart. A label has at most 63 characters.
func (r *run) labeler() postrenderer.PostRenderer {
	value := strings.NewReplacer("+", "_").Replace(r.chart.Name() + "-" + r.chart.Metadata.Version)
	return labeler{strings.TrimRight(value[:min(len(value), 63)], "-_.")}
}

// Run implements postrenderer.PostRenderer.
func (l labeler) Run(manifests *bytes.Buffer) (*bytes.Buffer, error) {
	objects, err := kio.ParseAll(manifests.String())
	if err != nil {
		return nil, fmt.Errorf("read what the chart rendered: %w", err)
	}
	for _, object := range objects {
		if err := object.PipeE(kyaml.SetLabel(order.ChartLabel, l.value)); err != nil {
			return nil, fmt.Errorf("label what the chart rendered: %w", err)
		}
	}
	text, err := kio.StringAll(objects)
	if err != nil {
		return nil, fmt.Errorf("write what the chart rendered: %w", err)
	}
	return bytes.NewBufferString(text), nil
}

// replaceCRDs applies the definitions of the chart's directory crds.
func (r *run) replaceCRDs() error {
	for _, crd := range r.chart.CRDObjects() {
		resources, err := r.config.KubeClient.Build(bytes.NewReader(crd.File.Data), false)
		if err != nil {
			return fmt.Errorf("read the definition %s: %w", crd.Name, err)
		}
		if _, err := r.config.KubeClient.Update(nil, resources, kube.ClientUpdateOptionServerSideApply(true, true)); err != nil {
			return fmt.Errorf("replace the definition %s: %w", crd.Name, err)
		}
	}
	return nil
}
