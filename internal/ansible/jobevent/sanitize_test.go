package jobevent_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

func TestSanitize(t *testing.T) {
	const hidden = `"******** (text of a Secret)"`
	cases := map[string]struct{ result, want string }{
		"what is no secret stays":                {`{"changed":true,"n":12345678901234567890,"data":{"a":"b"}}`, `{"changed":true,"n":12345678901234567890,"data":{"a":"b"}}`},
		"invocation goes at any depth":           {`{"invocation":1,"results":[{"a":1,"invocation":{"module_args":{}}}]}`, `{"results":[{"a":1}]}`},
		"Ansible's own members go":               {`{"_ansible_verbose_always":true,"a":{"_ansible_item_label":"x"}}`, `{"a":{}}`},
		"no_log at any depth hides all":          {`{"results":[{"_ansible_no_log":true,"msg":"x"}]}`, `{"results":[{"censored":"` + hiddenByNoLog + `"}]}`},
		"no_log: false hides nothing":            {`{"_ansible_no_log":false,"msg":"x"}`, `{"msg":"x"}`},
		"a Secret keeps its names only":          {`{"kind":"Secret","data":{"k":"djE="},"stringData":{"l":"v"},"metadata":{"name":"n"}}`, `{"kind":"Secret","data":{"k":"********"},"stringData":{"l":"********"},"metadata":{"name":"n"}}`},
		"a Secret in a result":                   {`{"result":{"kind":"Secret","data":{"k":"djE="}}}`, `{"result":{"kind":"Secret","data":{"k":"********"}}}`},
		"a Secret in a list":                     {`{"resources":[{"kind":"ConfigMap","data":{"k":"v"}},{"kind":"Secret","data":{"k":"v"}}]}`, `{"resources":[{"kind":"ConfigMap","data":{"k":"v"}},{"kind":"Secret","data":{"k":"********"}}]}`},
		"items of a SecretList need no kind":     {`{"kind":"SecretList","items":[{"data":{"k":"v"}}]}`, `{"kind":"SecretList","items":[{"data":{"k":"********"}}]}`},
		"data that is no map":                    {`{"kind":"Secret","data":"v"}`, `{"kind":"Secret","data":"********"}`},
		"a diff beside a Secret need not say so": {`{"result":{"kind":"Secret"},"diff":{"before":{"data":{"k":"old"}},"after":{"data":{"k":"new"}}}}`, `{"result":{"kind":"Secret"},"diff":{"before":{"data":{"k":"********"}},"after":{"data":{"k":"********"}}}}`},
		"the text of such a diff":                {`{"result":{"kind":"Secret"},"diff":{"before":"data:\n  k: old\n","after":"x"}}`, `{"result":{"kind":"Secret"},"diff":{"before":` + hidden + `,"after":"x"}}`},
		"a diff of something else":               {`{"result":{"kind":"ConfigMap"},"diff":{"before":{"data":{"k":"old"}}}}`, `{"result":{"kind":"ConfigMap"},"diff":{"before":{"data":{"k":"old"}}}}`},
		"YAML text":                              {`{"stdout":"apiVersion: v1\ndata:\n  k: djE=\nkind: Secret\n"}`, `{"stdout":` + hidden + `}`},
		"YAML text, line by line":                {`{"stdout_lines":["data:","  k: djE=","kind: Secret"]}`, `{"stdout_lines":[` + hidden + `]}`},
		"YAML lines beside something else":       {`{"stdout_lines":["kind: Secret",null,"stringData:","  k: v",1]}`, `{"stdout_lines":[` + hidden + `]}`},
		"a key in YAML, line by line":            {`{"stdout_lines":["kind: Secret","stringData:","  key: |","    -----BEGIN KEY-----","    abcdefgh","    -----END KEY-----"]}`, `{"stdout_lines":[` + hidden + `]}`},
		"JSON text":                              {`{"content":"{\"kind\": \"Secret\", \"data\": {\"k\": \"v\"}}"}`, `{"content":` + hidden + `}`},
		"JSON text within JSON text":             {`{"content":"{\"a\":\"{\\\"kind\\\":\\\"Secret\\\",\\\"data\\\":{}}\"}"}`, `{"content":` + hidden + `}`},
		"Python text":                            {`{"item":"{'kind': 'Secret', 'stringData': {'k': 'v'}}"}`, `{"item":` + hidden + `}`},
		"text that only names a Secret":          {`{"msg":"kind: Secret is not there"}`, `{"msg":"kind: Secret is not there"}`},
		"text about secrets":                     {`{"msg":"kind: secrets, data: none"}`, `{"msg":"kind: secrets, data: none"}`},
		"text with data that was cut":            {`{"msg":"data:\n k: v` + jobevent.CutMark + `"}`, `{"msg":` + hidden + `}`},
		"an object with data that was cut":       {`{"data":{"k":"v"},"` + jobevent.CutKey + `":"` + jobevent.CutMark + `"}`, `{"data":{"k":"********"},"` + jobevent.CutKey + `":"` + jobevent.CutMark + `"}`},
		"the environment among facts":            {`{"ansible_facts":{"ansible_env":{"TOKEN":"t","HOME":"/"},"ansible_nodename":"n"}}`, `{"ansible_facts":{"ansible_env":{"TOKEN":"********","HOME":"********"},"ansible_nodename":"n"}}`},
		"the environment of items":               {`{"results":[{"ansible_facts":{"ansible_env":{"TOKEN":"t"}}}]}`, `{"results":[{"ansible_facts":{"ansible_env":{"TOKEN":"********"}}}]}`},
		"facts without their prefix":             {`{"hostvars":{"h":{"ansible_facts":{"env":{"TOKEN":"t"}}}}}`, `{"hostvars":{"h":{"ansible_facts":{"env":{"TOKEN":"********"}}}}}`},
		"the environment, shown as a variable":   {`{"ansible_facts.env":{"T":"t"},"ansible_facts['env']":{"T":"t"},"ansible_env.T":"t"}`, `{"ansible_facts.env":{"T":"********"},"ansible_facts['env']":{"T":"********"},"ansible_env.T":"********"}`},
		"env that is no fact":                    {`{"env":{"A":"b"},"ansible_envoy":{"A":"b"},"ansible_facts":{"pods":[{"env":{"A":"b"}}]}}`, `{"env":{"A":"b"},"ansible_envoy":{"A":"b"},"ansible_facts":{"pods":[{"env":{"A":"b"}}]}}`},
		"a value the API server found invalid":   {`{"msg":"Secret \"s\" is invalid: [data[a]: Invalid value: \"one\": x, stringData[b]: Invalid value: \"t\\\"wo\": y]"}`, `{"msg":"Secret \"s\" is invalid: [data[a]: Invalid value: \"********\": x, stringData[b]: Invalid value: \"********\": y]"}`},
		"in the text of the server's answer":     {`{"msg":"{\"message\":\"data[a]: Invalid value: \\\"o\\\\\\\"ne\\\": x\",\"causes\":[{\"message\":\"Invalid value: \\\"one\\\": x\",\"field\":\"data[a]\"}]}"}`, `{"msg":"{\"message\":\"data[a]: Invalid value: \\\"********\\\": x\",\"causes\":[{\"message\":\"Invalid value: \\\"********\\\": x\",\"field\":\"data[a]\"}]}"}`},
		"in a cause of the server's answer":      {`{"causes":[{"message":"Invalid value: \"one\": x","field":"data[a]"}]}`, `{"causes":[{"message":"Invalid value: \"********\": x","field":"data[a]"}]}`},
		"in lines of text":                       {`{"lines":["* data[a]:","  Invalid value: \"one\""]}`, `{"lines":["* data[a]:","  Invalid value: \"********\""]}`},
		"a quoted value that was cut":            {`{"msg":"data[a]: Invalid value: \"one` + jobevent.CutMark + `"}`, `{"msg":"data[a]: Invalid value: \"********"}`},
		"a value that is not quoted":             {`{"msg":"data[a]: Invalid value: 123: x"}`, `{"msg":"data[a]: Invalid value: ********: x"}`},
		"an invalid value elsewhere":             {`{"msg":"spec.data[0]: Invalid value: \"one\": x"}`, `{"msg":"spec.data[0]: Invalid value: \"one\": x"}`},
		"stringData is of nothing but Secrets":   {`{"item":{"metadata":{"name":"n"},"stringData":{"k":"v"}}}`, `{"item":{"metadata":{"name":"n"},"stringData":{"k":"********"}}}`},
		"a Secret told by its type":              {`{"a":[{"type":"kubernetes.io/tls","data":{"k":"v"}},{"type":"Opaque","data":{"k":"v"}}]}`, `{"a":[{"type":"kubernetes.io/tls","data":{"k":"********"}},{"type":"Opaque","data":{"k":"********"}}]}`},
		"a type that is no Secret's":             {`{"type":"Directory","data":{"k":"v"}}`, `{"type":"Directory","data":{"k":"v"}}`},
		"a kind that was cut":                    {`{"data":{"k":"v"},"kind":"Sec` + jobevent.CutMark + `"}`, `{"data":{"k":"********"},"kind":"Sec` + jobevent.CutMark + `"}`},
		"an item beside a Secret":                {`{"item":{"data":{"k":"v"}},"result":{"kind":"Secret"}}`, `{"item":{"data":{"k":"********"}},"result":{"kind":"Secret"}}`},
		"an item of another name":                {`{"ansible_loop_var":"s","s":{"data":{"k":"v"}},"result":{"kind":"Secret"}}`, `{"ansible_loop_var":"s","s":{"data":{"k":"********"}},"result":{"kind":"Secret"}}`},
		"an item for a Secret, by the arguments": {`{"item":{"data":{"k":"v"}},"invocation":{"module_args":{"kind":"Secret"}}}`, `{"item":{"data":{"k":"********"}}}`},
		"a diff of a Secret, by the arguments":   {`{"diff":{"after":{"data":{"k":"v"}}},"invocation":{"module_args":{"kind":"Secret"}}}`, `{"diff":{"after":{"data":{"k":"********"}}}}`},
		"an item for something else":             {`{"item":{"data":{"k":"v"}},"invocation":{"module_args":{"kind":"ConfigMap"}}}`, `{"item":{"data":{"k":"v"}}}`},
		"the text of an item beside a Secret":    {`{"item":"data:\n k: v\n","result":{"kind":"Secret"}}`, `{"item":` + hidden + `,"result":{"kind":"Secret"}}`},
		"a JSON patch of a Secret":               {`{"item":[{"op":"add","path":"/data/k","value":"v"},{"op":"add","path":"/metadata/labels/l","value":"v"}],"result":{"kind":"Secret"}}`, `{"item":[{"op":"add","path":"/data/k","value":"********"},{"op":"add","path":"/metadata/labels/l","value":"v"}],"result":{"kind":"Secret"}}`},
		"a JSON patch of all of a Secret's data": {`{"item":{"op":"add","path":"/data","value":{"k":"v"}},"result":{"kind":"Secret"}}`, `{"item":{"op":"add","path":"/data","value":{"k":"********"}},"result":{"kind":"Secret"}}`},
		"a JSON patch of a ConfigMap":            {`{"item":{"op":"add","path":"/data/k","value":"v"},"result":{"kind":"ConfigMap"}}`, `{"item":{"op":"add","path":"/data/k","value":"v"},"result":{"kind":"ConfigMap"}}`},
		"a JSON patch of stringData":             {`{"item":{"op":"add","path":"/stringData/k","value":"v"}}`, `{"item":{"op":"add","path":"/stringData/k","value":"********"}}`},
		"hunks of a Secret's diff":               {`{"diff":{"prepared":"- k: old\n+ k: new\n"},"invocation":{"module_args":{"kind":"Secret"}}}`, `{"diff":{"prepared":` + hidden + `}}`},
		"hunks of another diff":                  {`{"diff":{"prepared":"- k: old\n+ k: new\n"}}`, `{"diff":{"prepared":"- k: old\n+ k: new\n"}}`},
		"the line at which text was not YAML":    {`{"msg":"no mapping here\n  in \"<unicode string>\", line 2, column 9:\n      k: v: w\n          ^ and more"}`, `{"msg":"no mapping here\n  in \"<unicode string>\", line 2, column 9:\n      ********\n          ^ and more"}`},
		"two such lines":                         {`{"msg":"a\n  in \"<byte string>\", line 1, column 1:\n    k: v\n    ^\nb\n  in \"<unicode string>\", line 2, column 9:\n    v: w\n        ^"}`, `{"msg":"a\n  in \"<byte string>\", line 1, column 1:\n    ********\n    ^\nb\n  in \"<unicode string>\", line 2, column 9:\n    ********\n        ^"}`},
		"such a line within JSON text":           {`{"msg":"{\"m\":\"in \\\"<unicode string>\\\", line 2, column 9:\\n   k: v\\n     ^\"}"}`, `{"msg":"{\"m\":\"in \\\"<unicode string>\\\", line 2, column 9:\\n   ********\\n     ^\"}"}`},
		"such a line among lines":                {`{"lines":["in \"<unicode string>\", line 2, column 9:","   k: v","     ^"]}`, `{"lines":["in \"<unicode string>\", line 2, column 9:\n   ********\n     ^"]}`},
		"the line of a file":                     {`{"msg":"in \"/a/b.yml\", line 2, column 9:\n   k: v\n     ^"}`, `{"msg":"in \"/a/b.yml\", line 2, column 9:\n   k: v\n     ^"}`},
		"an annotation that repeats the Secret":  {`{"kind":"Secret","metadata":{"annotations":{"last":"{\"data\":{\"k\":\"v\"}}"}}}`, `{"kind":"Secret","metadata":{"annotations":{"last":` + hidden + `}}}`},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			result := parse(t, c.result)
			if diff := cmp.Diff(parse(t, c.want), jobevent.Sanitize(result)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(parse(t, c.result), result); diff != "" {
				t.Errorf("the original changed: %s", diff)
			}
		})
	}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSanitizeIsBoundedInDepth(t *testing.T) {
	deep := map[string]any{"kind": "Secret"}
	for range 10_000 {
		deep = map[string]any{"a": []any{deep}, "diff": nil}
	}
	depth := 0
	for at := any(jobevent.Sanitize(deep)); depth < 200; depth++ {
		switch v := at.(type) {
		case map[string]any:
			at = v["a"]
			continue
		case []any:
			at = v[0]
			continue
		}
		if at != jobevent.CutMark {
			t.Errorf("it ends with %v", at)
		}
		break
	}
	if depth > 64 {
		t.Errorf("%d levels", depth)
	}
	if jobevent.Sanitize(nil) != nil {
		t.Error("no result is a result")
	}
}
