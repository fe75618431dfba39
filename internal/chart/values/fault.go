package values

import (
	"errors"
	"fmt"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/ensign-operator/ensign/pkg/content"
)

// ErrChart is each FaultError.
var ErrChart = errors.New("the chart is at fault")

// Reasons of a FaultError.
const (
	// ReasonInvalidChart: the chart's files, its output or overrideValues are at fault.
	ReasonInvalidChart content.Reason = "InvalidChart"
	// ReasonSchemaUnreachable: an address to which values.schema.json refers could not be fetched.
	ReasonSchemaUnreachable content.Reason = "SchemaUnreachable"
)

// FaultError is a fault of the chart or of the network. No change of a CR fixes it.
type FaultError struct {
	Reason content.Reason
	Err    error
}

// Error implements error.
func (e *FaultError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FaultError) Unwrap() error { return e.Err }

// Is reports whether the target is ErrChart.
func (*FaultError) Is(target error) bool { return target == ErrChart }

func invalidChart(err error) error { return &FaultError{ReasonInvalidChart, err} }

// missing returns an error for dependencies that are enabled and not in the chart. Helm would leave them
// out without a word.
func missing(c *chart.Chart) error {
	there, absent := map[string]bool{}, []string(nil)
	for _, dependency := range c.Dependencies() {
		there[dependency.Name()] = true
	}
	for _, wanted := range c.Metadata.Dependencies {
		if !there[wanted.Name] {
			absent = append(absent, wanted.Name)
		}
	}
	if len(absent) > 0 {
		return invalidChart(fmt.Errorf("the chart %s depends on %s, which is not in its directory charts/ in a version that Chart.yaml allows: run helm dependency build before the image is built", c.Name(), strings.Join(absent, ", ")))
	}
	for _, dependency := range c.Dependencies() {
		if err := missing(dependency); err != nil {
			return err
		}
	}
	return nil
}
