package engine

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

// Labels returns the label with the chart's name and version. The API proxy sets it on the objects of
// the release: in the chart's text it would get into selectors, which may share a map with labels.
func (w *work) Labels() map[string]string {
	if w.values == nil {
		return nil // Nothing is rendered.
	}
	return map[string]string{order.ChartLabel: chartLabel(w.values.Chart, w.values.Version)}
}

var notInLabels = regexp.MustCompile(`[^-_.a-zA-Z0-9]`)

// chartLabel returns a chart's name and version, cut to fit a label.
func chartLabel(name, version string) string {
	value := notInLabels.ReplaceAllString(name+"-"+version, "_")
	return strings.Trim(value[:min(len(value), validation.LabelValueMaxLength)], "-_.")
}
