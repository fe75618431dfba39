package safevars

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Stand-ins for halves of a surrogate pair, which Go's strings cannot hold but
// JSON can write: alone, paired, or the wrong way round.
const (
	highHalf = "\ue000"
	lowHalf  = "\ue001"
)

// hostile are the texts that readers of JSON and YAML are known to disagree
// about.
func hostile() []string {
	return []string{
		"", " ", "\t", "\n", "\r\n", "\x00", "\x01", "\x1b[0m", "\x7f", "\u0085", "\u00a0", "\u2028", "\u2029", "\ufeff", "\ufffd",
		"\ufffe", "\uffff", "😀", "𐀀", "\U0010ffff", "é", "e\u0301", "\u202e", "{{ 6*7 }}", "{% if 1 %}", "{# c #}", "}}", "{{", "%}",
		"#jinja2: variable_start_string:'[['", "!unsafe x", "!vault |", "!!python/object/apply:os.system [id]", "&a", "*a", "<<: *a", "? x",
		"- x", "a: b", "|\n  x", ">\n  x", "---", "...", "%YAML 1.1", "@x", "`x`", "#", "# c", "'", "\"", "\\", "\\u0041", "\\x41", "\\ud800",
		"~", "null", "yes", "no", "on", "True", "1", "0x1f", "0o7", "017", "1_000", "1e3", ".inf", ".nan", "-", "=", "2024-01-02", "12:30:45",
		"$ANSIBLE_VAULT;1.1;AES256\n3061\n", "$ANSIBLE_VAULT;1.2;AES256;dev\n3061\n", "__ansible_unsafe", `{"__ansible_unsafe": "x"}`,
		`{"__ansible_vault": "x"}`, "__ansible_type", "</script>", "${HOME}", highHalf, lowHalf, highHalf + lowHalf,
	}
}

// documentSource makes random objects.
type documentSource struct {
	rand *rand.Rand
	// prefix begins every text and every key.
	prefix string
}

// requests are documents, with the variables that Ansible must read in them.
func (s documentSource) requests(t *testing.T, n int) (requests []request, wants []any) {
	t.Helper()
	for range n {
		object, vars := s.object(t), map[string]any{"trusted_one": s.value(3)}
		o := thing(true)
		o.Vars = vars
		requests = append(requests, request{Text: encode(t, object, o)})
		wants = append(wants, wantVariables(object, vars))
	}
	return requests, wants
}

// object is one as Kubernetes' decoder gives it to the manager.
func (s documentSource) object(t *testing.T) map[string]any {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"name":        s.text(),
			"namespace":   s.text(),
			"annotations": s.mapping(1),
		},
		"spec":   s.mapping(5),
		"status": s.mapping(3),
	})
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte(highHalf), []byte(`\ud83d`))
	text = bytes.ReplaceAll(text, []byte(lowHalf), []byte(`\ude00`))
	var object map[string]any
	if err := utiljson.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func (s documentSource) text() string {
	text := strings.Builder{}
	text.WriteString(s.prefix)
	special := hostile()
	for range s.rand.IntN(4) {
		text.WriteString(special[s.rand.IntN(len(special))])
	}
	for range s.rand.IntN(3) {
		if r := rune(s.rand.IntN(0x110000)); r < 0xd800 || r > 0xdfff {
			text.WriteRune(r)
		}
	}
	return text.String()
}

// mapping has keys that are no reserved ones.
func (s documentSource) mapping(depth int) map[string]any {
	m := map[string]any{}
	for range s.rand.IntN(5) {
		m["k"+s.text()] = s.value(depth - 1)
	}
	return m
}

func (s documentSource) value(depth int) any {
	kind := s.rand.IntN(10)
	if depth <= 0 {
		kind %= 7
	}
	switch kind {
	case 0:
		return nil
	case 1:
		return s.rand.IntN(2) == 0
	case 2:
		return int64(s.rand.Uint64()) >> s.rand.IntN(64)
	case 3:
		f := math.Float64frombits(s.rand.Uint64())
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return 0.5
		}
		return f
	case 4, 5, 6:
		return s.text()
	case 7:
		l := make([]any, s.rand.IntN(4))
		for i := range l {
			l[i] = s.value(depth - 1)
		}
		return l
	default:
		return s.mapping(depth)
	}
}

// wantVariables are the variables of the object as loader.py describes them.
func wantVariables(object, vars map[string]any) any {
	spec := object["spec"].(map[string]any)
	metadata := object["metadata"].(map[string]any)
	all := map[string]any{}
	for key, value := range spec {
		all[key] = tree(value, false)
	}
	all["ansible_operator_meta"] = tree(map[string]any{"name": metadata["name"], "namespace": metadata["namespace"]}, false)
	all["_safe_test_thing"] = tree(object, false)
	all["_safe_test_thing_spec"] = tree(spec, false)
	for key, value := range vars {
		all[key] = tree(value, true)
	}
	return map[string]any{"map": all}
}

func tree(value any, trusted bool) any {
	switch value := value.(type) {
	case nil:
		return map[string]any{"null": true}
	case bool:
		return map[string]any{"bool": value}
	case int64:
		return map[string]any{"int": strconv.FormatInt(value, 10)}
	case float64:
		return map[string]any{"float": strconv.FormatUint(math.Float64bits(value), 10)}
	case string:
		return map[string]any{"str": value, "trusted": trusted}
	case []any:
		list := make([]any, len(value))
		for i := range value {
			list[i] = tree(value[i], trusted)
		}
		return map[string]any{"list": list}
	case map[string]any:
		m := map[string]any{}
		for key := range value {
			m[key] = tree(value[key], trusted)
		}
		return map[string]any{"map": m}
	default:
		return fmt.Sprintf("a %T", value)
	}
}
