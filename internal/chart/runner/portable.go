package runner

import (
	"encoding/json"
	"fmt"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/values"
)

// Encode returns the part of the spec that a process in another pod needs: the order, and the values to
// redact, so that they do not leave the pod. It does not have the description of the run.
func (s Spec) Encode() ([]byte, error) {
	return json.Marshal(struct {
		Order  order.Order  `json:"order"`
		Hidden *values.Mask `json:"hidden"`
	}{s.Order, s.Hidden})
}

// Decode returns the spec that Encode was called for, without the description of the run.
func Decode(text []byte) (Spec, error) {
	var encoded struct {
		Order  json.RawMessage `json:"order"`
		Hidden *values.Mask    `json:"hidden"`
	}
	if err := json.Unmarshal(text, &encoded); err != nil {
		return Spec{}, fmt.Errorf("read the order: %w", err)
	}
	o, err := order.Decode(encoded.Order)
	return Spec{Order: o, Hidden: encoded.Hidden}, err
}
