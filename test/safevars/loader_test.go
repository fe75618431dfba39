package safevars

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const documents = 3000

// request asks testdata/loader.py to read a file.
type request struct {
	Text []byte `json:"text"`
	Mode string `json:"mode"`
}

// answer is what Ansible made of it.
type answer struct {
	Value any    `json:"value"`
	Error string `json:"error"`
}

// read has Ansible read all files in one Python process.
func read(t *testing.T, requests []request) []answer {
	t.Helper()
	var in bytes.Buffer
	for _, r := range requests {
		if err := json.NewEncoder(&in).Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), program(t, "python"), "testdata/loader.py")
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = &in, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("loader.py: %v\n%s", err, stderr.String())
	}
	var answers []answer
	decoder := json.NewDecoder(bufio.NewReader(bytes.NewReader(out)))
	for {
		var a answer
		err := decoder.Decode(&a)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("loader.py's answer: %v", err)
		}
		answers = append(answers, a)
	}
	if len(answers) != len(requests) {
		t.Fatalf("%d answers to %d requests", len(answers), len(requests))
	}
	return answers
}

func TestAnsibleReadsWhatTheObjectSays(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var requests []request
	var wants []any
	for range documents {
		object, vars := randomObject(random), map[string]any{"trusted_one": randomValue(random, 3)}
		o := thing(true)
		o.Vars = vars
		requests = append(requests, request{Text: encode(t, object, o)})
		wants = append(wants, wantVariables(object, vars))
	}
	for i, got := range read(t, requests) {
		if diff := cmp.Diff(wants[i], got.Value); diff != "" || got.Error != "" {
			t.Fatalf("document %d: %s%s\n%s", i, got.Error, diff, requests[i].Text)
		}
	}
}

func TestAnsibleRefusesWhatItsDecoderGivesUp(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var requests []request
	for range documents {
		text := encode(t, randomObject(random), thing(true))
		requests = append(requests, request{Text: text, Mode: "yaml"}, request{Text: broken(random, text)})
	}
	for i, got := range read(t, requests) {
		if got.Error == "" {
			t.Fatalf("document %d was read:\n%s", i, requests[i].Text)
		}
	}
}

// Without the two bytes in front, the second reading takes marked strings for
// maps of templates. This shows that the test above can see it.
func TestAnsibleReadsUnprotectedTextAsYAML(t *testing.T) {
	text := encode(t, map[string]any{"spec": map[string]any{"a": "{{ 6*7 }}"}}, thing(true))
	got := read(t, []request{{Text: bytes.TrimPrefix(text, []byte("\t\n")), Mode: "yaml"}})[0]
	read, _ := json.Marshal(got.Value)
	want := `"a":{"map":{"__ansible_unsafe":{"str":"{{ 6*7 }}","trusted":true}},"trusted keys":true}`
	if !strings.Contains(string(read), want) {
		t.Errorf("Ansible read %s %s, want it to hold %s", got.Error, read, want)
	}
}

// broken changes a text so that no JSON reader takes it.
func broken(random *rand.Rand, text []byte) []byte {
	for {
		at := 2 + random.IntN(len(text)-2)
		var changed []byte
		switch random.IntN(4) {
		case 0:
			changed = slices.Clone(text[:at])
		case 1:
			changed = slices.Insert(slices.Clone(text), at, []byte(hostile[random.IntN(len(hostile))])...)
		case 2:
			changed = slices.Delete(slices.Clone(text), at, at+1)
		case 3:
			changed = bytes.Replace(text, []byte(`{"__ansible_unsafe":`), []byte(`{"__ansible_unsafe":1,"x":`), 1)
			return changed
		}
		if !json.Valid(changed) {
			return changed
		}
	}
}

// hostile are the texts that readers of JSON and YAML are known to disagree
// about.
var hostile = []string{
	"", " ", "\t", "\n", "\r\n", "\x00", "\x01", "\x1b[0m", "\x7f", "\u0085", "\u00a0", "\u2028", "\u2029", "\ufeff", "\ufffd",
	"\ufffe", "\uffff", "😀", "𐀀", "\U0010ffff", "é", "e\u0301", "\u202e", "{{ 6*7 }}", "{% if 1 %}", "{# c #}", "}}", "{{", "%}",
	"#jinja2: variable_start_string:'[['", "!unsafe x", "!vault |", "!!python/object/apply:os.system [id]", "&a", "*a", "<<: *a", "? x",
	"- x", "a: b", "|\n  x", ">\n  x", "---", "...", "%YAML 1.1", "@x", "`x`", "#", "# c", "'", "\"", "\\", "\\u0041", "\\x41",
	"~", "null", "yes", "no", "on", "True", "1", "0x1f", "0o7", "017", "1_000", "1e3", ".inf", ".nan", "-", "=", "2024-01-02", "12:30:45",
	"$ANSIBLE_VAULT;1.1;AES256\n3061\n", "__ansible_unsafe", `{"__ansible_unsafe": "x"}`, `{"__ansible_vault": "x"}`, "</script>", "${HOME}",
}

func randomText(random *rand.Rand) string {
	var text strings.Builder
	for range random.IntN(4) {
		text.WriteString(hostile[random.IntN(len(hostile))])
	}
	for range random.IntN(3) {
		if r := rune(random.IntN(0x110000)); r < 0xd800 || r > 0xdfff {
			text.WriteRune(r)
		}
	}
	return text.String()
}

// randomKey gives a key that is no reserved one.
func randomKey(random *rand.Rand) string { return "k" + randomText(random) }

func randomMap(random *rand.Rand, depth int) map[string]any {
	m := map[string]any{}
	for range random.IntN(5) {
		m[randomKey(random)] = randomValue(random, depth-1)
	}
	return m
}

func randomValue(random *rand.Rand, depth int) any {
	kind := random.IntN(10)
	if depth <= 0 {
		kind %= 7
	}
	switch kind {
	case 0:
		return nil
	case 1:
		return random.IntN(2) == 0
	case 2:
		return int64(random.Uint64()) >> random.IntN(64)
	case 3:
		f := math.Float64frombits(random.Uint64())
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return 0.5
		}
		return f
	case 4, 5, 6:
		return randomText(random)
	case 7:
		l := make([]any, random.IntN(4))
		for i := range l {
			l[i] = randomValue(random, depth-1)
		}
		return l
	default:
		return randomMap(random, depth)
	}
}

func randomObject(random *rand.Rand) map[string]any {
	return map[string]any{
		"metadata": map[string]any{
			"name":        randomText(random),
			"namespace":   randomText(random),
			"annotations": randomMap(random, 1),
		},
		"spec":   randomMap(random, 5),
		"status": randomMap(random, 3),
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
