package objects

import (
	"context"
	"slices"

	"k8s.io/client-go/rest"
)

// Warnings gives the API server's warnings to the apply whose request they answer. The client's configuration must
// have it; other requests log their warnings.
type Warnings struct{ rest.WarningLogger }

type warningsOf struct{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w Warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, agent, text string) {
	into, ok := ctx.Value(warningsOf{}).(*[]string)
	if !ok {
		w.HandleWarningHeader(code, agent, text)
		return
	}
	if !slices.Contains(*into, text) {
		*into = append(*into, text)
	}
}
