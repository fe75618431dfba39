package action

import (
	"encoding/json"
	"io"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

// Evaluate writes the results of the order's texts as templates: a list of order.Evaluated. They
// are the author's, and may use all functions of sprig.
func Evaluate(o order.Order, out io.Writer) error {
	results := make([]order.Evaluated, len(o.Texts))
	for i, text := range o.Texts {
		var result strings.Builder
		t, err := template.New("override").Funcs(sprig.TxtFuncMap()).Option("missingkey=error").Parse(text)
		if err == nil {
			err = t.Execute(&result, nil)
		}
		if err != nil {
			results[i].Error = err.Error()
			continue
		}
		results[i].Text = result.String()
	}
	return json.NewEncoder(out).Encode(results)
}
