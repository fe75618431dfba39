package ownership

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/boundedyaml"
)

// readDocument reads the object of a POST or a PUT. No content type means JSON, as it does for
// the API server.
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

func readYAML(body []byte) (map[string]any, error) {
	body, err := boundedyaml.RequestToJSON(body)
	if err != nil {
		return nil, fmt.Errorf("read the object as YAML: %w", err)
	}
	return readJSON(body)
}

// readJSON reads an object. Numbers keep their text.
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

// duplicates returns an error that names the keys that a body, which was read, has more than once.
func duplicates(mediaType string, body []byte) error {
	var value any
	repeated, err := kjson.UnmarshalStrict(body, &value, kjson.DisallowDuplicateFields)
	if err != nil && strings.HasSuffix(mediaType, "yaml") { // It is not JSON.
		_, err = yaml.YAMLToJSONStrict(body)
	}
	return errors.Join(append(repeated, err)...)
}

// maxYAMLKey is the number of characters, quotes included, after which a YAML parser expects the
// colon of a key at the latest.
const maxYAMLKey = 1024

// encode returns the object as JSON. With asYAML, it returns JSON that YAML parsers accept.
func encode(object map[string]any, asYAML bool) ([]byte, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	if !asYAML {
		return body, nil
	}
	if key, ok := findLongKey(object); ok {
		return nil, fmt.Errorf("the key %.40q… is longer than the %d characters that YAML's readers take", key, maxYAMLKey)
	}
	return escape(body), nil
}

// escape escapes the characters in JSON that YAML does not allow or treats as a line break.
func escape(body []byte) []byte {
	if !bytes.ContainsFunc(body, mustBeEscaped) {
		return body
	}
	escaped := &bytes.Buffer{}
	for _, r := range string(body) {
		if mustBeEscaped(r) {
			fmt.Fprintf(escaped, `\u%04x`, r)
			continue
		}
		escaped.WriteRune(r)
	}
	return escaped.Bytes()
}

// findLongKey returns a key, at any depth, that is too long for YAML.
func findLongKey(value any) (key string, found bool) {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			if quoted, err := json.Marshal(key); err != nil || utf8.RuneCount(escape(quoted)) > maxYAMLKey {
				return key, true
			}
			if key, found = findLongKey(member); found {
				return key, true
			}
		}
	case []any:
		for _, member := range value {
			if key, found = findLongKey(member); found {
				return key, true
			}
		}
	}
	return "", false
}

func mustBeEscaped(r rune) bool {
	return r >= 0x7f && r <= 0x9f || r == 0xfeff || r == 0xfffe || r == 0xffff
}
