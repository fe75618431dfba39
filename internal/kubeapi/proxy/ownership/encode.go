package ownership

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
)

// readDocument reads the object of a POST or a PUT. No content type means JSON, as
// for the API server.
func readDocument(mediaType string, body []byte) (map[string]any, error) {
	switch mediaType {
	case "", "application/json":
		return readJSON(body)
	case "application/yaml", "text/yaml":
		return readYAML(body)
	case runtime.ContentTypeProtobuf:
		return readProtobuf(body)
	default:
		return nil, &UnreadableError{mediaType}
	}
}

// readYAML reads JSON too, which clients send as YAML, and without the limits of YAML's
// readers.
func readYAML(body []byte) (map[string]any, error) {
	if object, err := readJSON(body); err == nil {
		return object, nil
	}
	body, err := YAMLToJSON(body)
	if err != nil {
		return nil, fmt.Errorf("read the object as YAML: %w", err)
	}
	return readJSON(body)
}

// readJSON leaves every number as it was written.
func readJSON(body []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, fmt.Errorf("read the object as JSON: %w", err)
	}
	if object == nil {
		return nil, errors.New("read the object as JSON: it is null")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read the object as JSON: something follows it")
	}
	return object, nil
}

// maxYAMLKey is how many characters a key may take, quotes included, that YAML's readers
// know by the colon behind it.
const maxYAMLKey = 1024

// encode returns the object as JSON, as YAML's readers take it where the API server has one
// for it.
func encode(object map[string]any, asYAML bool) ([]byte, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	if !asYAML {
		return body, nil
	}
	if key, ok := longKey(object); ok {
		return nil, fmt.Errorf("the key %.40q… is longer than the %d characters that YAML's readers take", key, maxYAMLKey)
	}
	return escape(body), nil
}

// escape escapes characters in JSON that YAML does not allow, or takes for the end of a
// line.
func escape(body []byte) []byte {
	if !bytes.ContainsFunc(body, isSpecial) {
		return body
	}
	escaped := &bytes.Buffer{}
	for _, r := range string(body) {
		if isSpecial(r) {
			fmt.Fprintf(escaped, `\u%04x`, r)
			continue
		}
		escaped.WriteRune(r)
	}
	return escaped.Bytes()
}

// longKey finds a key, at any depth, that is too long for YAML.
func longKey(value any) (key string, found bool) {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			if quoted, err := json.Marshal(key); err != nil || utf8.RuneCount(escape(quoted)) > maxYAMLKey {
				return key, true
			}
			if key, found = longKey(member); found {
				return key, true
			}
		}
	case []any:
		for _, member := range value {
			if key, found = longKey(member); found {
				return key, true
			}
		}
	}
	return "", false
}

func isSpecial(r rune) bool {
	return r >= 0x7f && r <= 0x9f || r == 0xfeff || r == 0xfffe || r == 0xffff
}
