package action

import (
	"bytes"
	"fmt"
)

// replaceCRDs applies the CRDs of the chart's directory crds.
func (r *run) replaceCRDs() error {
	for _, crd := range r.chart.CRDObjects() {
		resources, err := r.config.KubeClient.Build(bytes.NewReader(crd.File.Data), false)
		if err != nil {
			return fmt.Errorf("read the CRD %s: %w", crd.Name, err)
		}
		if err := r.client.ReplaceCRDs(resources); err != nil {
			return fmt.Errorf("replace the CRD %s: %w", crd.Name, err)
		}
	}
	r.config.Capabilities = nil
	return nil
}
