package proxy

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/ensign-operator/ensign/internal/boundedyaml"
)

// The headers by which k8s_status names the conditions that the content sets, and learns the
// generation for which it runs. It sends no request to set a value that is set already.
const (
	typesHeader      = "Ensign-Condition-Types"
	generationHeader = "Ensign-Generation"
)

// reportReady reports the conditions Ready that a request sets in the status of the owner. A body that is
// neither JSON nor YAML has none: a custom resource has no other format but CBOR, which no client of content
// sends.
func (p *Proxy) reportReady(w http.ResponseWriter, q *request) error {
	types, says := q.Header[typesHeader]
	writes := q.info.Subresource == "status" && (q.info.Verb == "update" || q.info.Verb == "patch")
	if q.Header.Del(typesHeader); q.session.Ready == nil || !says && !writes {
		return nil
	}
	if isOwner, err := p.isOwner(q); err != nil || !isOwner {
		return err
	}
	if says {
		w.Header().Set(generationHeader, strconv.FormatInt(q.session.Generation, 10))
		if slices.Contains(strings.Split(strings.Join(types, ","), ","), "Ready") {
			q.session.Ready(map[string]any{"type": "Ready"})
		}
		return nil
	}
	body, err := p.readBody(w, q.Request)
	if err != nil {
		return err
	}
	q.replaceBody(body, "")
	if !bytes.Contains(body, []byte("Ready")) {
		return nil
	}
	eachReady(decoded(body), q.session.Ready)
	return nil
}

// decoded returns the value of a body in JSON or YAML, and nil of any other: the API server says what is
// wrong with it.
func decoded(body []byte) (value any) {
	plain, err := boundedyaml.RequestToJSON(body) // JSON is YAML.
	if err != nil || utiljson.Unmarshal(plain, &value) != nil {
		return nil
	}
	return value
}

// eachReady calls report with each condition Ready in a body, wherever the format of a patch has it.
func eachReady(value any, report func(map[string]any)) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			eachReady(item, report)
		}
	case map[string]any:
		if _, states := value["status"].(string); states && value["type"] == "Ready" {
			report(value)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			eachReady(value[key], report)
		}
	}
}
