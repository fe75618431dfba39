package hooks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Override adds trusted values. The error says that they have no form in JSON.
func (h *Hooks) Override(values map[string]any) error {
	converted, err := asJSON(values)
	if err == nil {
		h.Overrides = merge(h.Overrides, converted)
	}
	return err
}

// asJSON returns the values with the types of JSON, whatever types of Go they have.
func asJSON(values map[string]any) (map[string]any, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("the values are not JSON: %w", err)
	}
	converted := map[string]any{}
	if err := utiljson.Unmarshal(text, &converted); err != nil {
		return nil, fmt.Errorf("the values are not JSON: %w", err)
	}
	if converted == nil { // They were nil.
		converted = map[string]any{}
	}
	return converted, nil
}

// digest returns the digest of all that runs depend on beside the CR: of the content, which is
// inner, and of the hooks. It is "" if one of them is unknown.
func (h *Hooks) digest(inner string) string {
	switch {
	case inner == "", h.haveCode() && h.Version == "":
		return ""
	case h.none():
		return inner
	}
	overrides := digestOfValues(h.Overrides)
	if overrides == "" {
		return ""
	}
	return digestOf(inner, overrides, h.Version)
}

// digestOfValues returns the digest of values; "" if they are not JSON.
func digestOfValues(values map[string]any) string {
	text, err := json.Marshal(values)
	if err != nil {
		return ""
	}
	return digestOf(string(text))
}

// digestLength is the number of hexadecimal digits of a digest.
const digestLength = 32

func digestOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:])[:digestLength]
}
