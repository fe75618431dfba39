package action

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

// Render writes the text that the chart of the order renders, without a cluster: an order.File for
// each template, without partials and notes.
func Render(ctx context.Context, o order.Order, out io.Writer) error {
	c, err := loader.Load(o.Chart)
	if err != nil {
		return fmt.Errorf("load the chart: %w", err)
	}
	if o.Values == nil {
		o.Values = map[string]any{}
	}
	if err := chartutil.ProcessDependencies(c, o.Values); err != nil {
		return fmt.Errorf("the chart's dependencies: %w", err)
	}
	release := common.ReleaseOptions{Name: o.Name, Namespace: o.Namespace, Revision: 1, IsInstall: true}
	values, err := util.ToRenderValues(c, o.Values, release, common.DefaultCapabilities.Copy())
	if err != nil {
		return err
	}
	files, err := engine.Engine{CustomTemplateFuncs: newEvaluator(ctx, o, c).templateFuncs()}.RenderWithContext(ctx, c, values)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "NOTES.txt") { // As in Helm, with any prefix.
			continue
		}
		if err := encoder.Encode(order.File{Name: name, Text: files[name]}); err != nil {
			return err
		}
	}
	return nil
}
