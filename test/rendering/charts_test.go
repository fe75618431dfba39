package rendering

import "maps"

// sub returns the files of a subchart with a ConfigMap, and those given, by their paths in it.
func sub(name string, files map[string]string) map[string]string {
	all := map[string]string{
		"charts/" + name + "/Chart.yaml":           "apiVersion: v2\nname: " + name + "\nversion: 1.2.3\n",
		"charts/" + name + "/templates/of-" + name: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Chart.Name }}}\ndata: {{ toJson .Values }}\n",
		"charts/" + name + "/templates/_" + name:   `{{ define "` + name + `.name" }}{{ .Chart.Name }}-{{ .Release.Name }}{{ end }}`,
	}
	for path, text := range files {
		all["charts/"+name+"/"+path] = text
	}
	return all
}

func join(all ...map[string]string) map[string]string {
	joined := map[string]string{}
	for _, files := range all {
		maps.Copy(joined, files)
	}
	return joined
}

// data returns a template with one ConfigMap, which has the text as its data.
func data(text string) map[string]string {
	return map[string]string{"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n" + text + "\n"}
}

func depends(entries string) map[string]string {
	return map[string]string{"Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\nappVersion: \"1e3\"\ndependencies:\n" + entries}
}

func values(text string) map[string]string { return map[string]string{"values.yaml": text} }

// object is a manifest with a name and what stands below it.
func object(kind, name, rest string) string {
	return "apiVersion: v1\nkind: " + kind + "\nmetadata:\n  name: " + name + "\n" + rest
}

const hook = "  annotations: {helm.sh/hook: "

// one is a chart, and the values of a CR for it.
type one struct {
	files  map[string]string
	values map[string]any
}

// charts have the constructs that public charts are made of.
var charts = map[string]one{
	"a condition that is off":        {files: join(sub("db", nil), depends("- {name: db, version: 1.x.x, condition: \"no.such,db.enabled\"}\n"), values("db: {enabled: false}\n"), data("  a: b"))},
	"a condition that the CR sets":   {files: join(sub("db", nil), depends("- {name: db, version: 1.x.x, condition: db.enabled}\n"), values("db: {enabled: false}\n")), values: map[string]any{"db": map[string]any{"enabled": true}}},
	"a condition that is no boolean": {files: join(sub("db", nil), depends("- {name: db, version: 1.x.x, condition: db.enabled}\n"), values("db: {enabled: \"false\"}\n"))},
	"tags":                           {files: join(sub("db", nil), sub("web", nil), depends("- {name: db, version: 1.x.x, tags: [back]}\n- {name: web, version: 1.x.x, tags: [front, back]}\n"), values("tags: {front: true}\n")), values: map[string]any{"tags": map[string]any{"back": false}}},
	"aliases":                        {files: join(sub("db", values("size: 1\n")), depends("- {name: db, version: 1.x.x, alias: first}\n- {name: db, version: 1.x.x, alias: second, condition: second.enabled}\n"), values("second: {size: 2}\n")), values: map[string]any{"first": map[string]any{"size": "3"}}},
	"a subchart of no dependency":    {files: join(sub("db", values("a: 1\n")), data("  a: {{ .Values.db.a | quote }}"))},
	"imported values":                {files: join(sub("db", values("exports: {port: {number: 80}}\nin: {a: {b: 1, c: 2}}\n")), depends("- {name: db, version: 1.x.x, import-values: [port, {child: in.a, parent: from.db}]}\n"), values("from: {db: {c: 3}}\n"), data("  a: {{ .Values.from | toJson | quote }}\n  b: {{ .Values.number | quote }}"))},
	"global values":                  {files: join(sub("db", values("global: {a: db, b: db}\n")), values("global: {a: c, d: {e: 1}}\n"), data("  a: {{ toJson .Values.global | quote }}")), values: map[string]any{"global": map[string]any{"d": map[string]any{"f": "2"}}, "db": map[string]any{"global": map[string]any{"g": "3"}}}},
	"a library":                      {files: join(sub("lib", map[string]string{"Chart.yaml": "apiVersion: v2\nname: lib\nversion: 1.0.0\ntype: library\n", "templates/not.yaml": "kind: [", "templates/_l.tpl": `{{ define "lib.cm" }}{{ $top := first . }}{{ $over := fromYaml (include (index . 1) $top) }}{{ toYaml (mustMergeOverwrite (dict "kind" "ConfigMap" "apiVersion" "v1") $over) }}{{ end }}`}), map[string]string{"templates/x.yaml": `{{ include "lib.cm" (list . "c.cm") }}{{ define "c.cm" }}metadata: {name: x}{{ end }}`})},
	"subcharts in a subchart":        {files: join(sub("web", map[string]string{"charts/deep/Chart.yaml": "apiVersion: v2\nname: deep\nversion: 1.0.0\n", "charts/deep/values.yaml": "a: 1\n", "charts/deep/templates/d.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Values.a }}-{{ .Values.global.z }}}\n"}), values("web: {deep: {a: x}}\nglobal: {z: y}\n"))},
	"a null that deletes a default":  {files: join(values("a: 1\nb: {c: 2, d: 3}\nprobe: {httpGet: {path: /}}\n"), data("  all: {{ toJson .Values | quote }}")), values: map[string]any{"a": nil, "b": map[string]any{"c": nil}, "probe": map[string]any{"httpGet": nil, "exec": map[string]any{}}}},
	"a null in the chart's values":   {files: join(values("a:\nb: {c: ~, d: null}\nl: [~, 1]\n"), data("  all: {{ toJson .Values | quote }}\n  has: {{ hasKey .Values \"a\" | quote }}{{ with .Values.a }}x{{ end }}\n  print: \"{{ .Values.a }}{{ .Values.b.c }}{{ .Values.no }}\""))},
	"a null for a subchart":          {files: join(sub("db", values("a: {b: 1}\nc: 2\n")), values("db: {a: null}\n"), data("  a: b")), values: map[string]any{"db": map[string]any{"c": nil}}},
	"a null for a default null":      {files: join(values("a: ~\nb: {c: ~}\n"), data("  all: {{ toJson .Values | quote }}")), values: map[string]any{"a": nil, "b": map[string]any{"c": nil, "x": nil}}},
	"a map over a text":              {files: join(values("a: text\nb: {c: 1}\n"), data("  all: {{ toJson .Values | quote }}")), values: map[string]any{"a": map[string]any{"x": "y"}, "b": "text"}},
	"tpl of every kind":              {files: join(map[string]string{"templates/_h.tpl": `{{ define "c.render" }}{{ $v := typeIs "string" .value | ternary .value (.value | toYaml) }}{{ if contains "{{" (toJson .value) }}{{ if .scope }}{{ tpl (cat "{{- with $.RelativeScope -}}" $v "{{- end }}") (merge (dict "RelativeScope" .scope) .context) }}{{ else }}{{ tpl $v .context }}{{ end }}{{ else }}{{ $v }}{{ end }}{{ end }}`}, values("name: \"{{ .Release.Name }}-x\"\nlabels: {a: '{{ tpl .Values.name . }}', '{{ .Release.Name }}': \"it's\"}\nscoped: '{{ .z }}'\nplain: [1, two]\n"), data("  {{- include \"c.render\" (dict \"value\" .Values.labels \"context\" $) | nindent 2 }}\n  b: {{ include \"c.render\" (dict \"value\" .Values.scoped \"context\" $ \"scope\" (dict \"z\" \"y\")) }}\n  c: {{ include \"c.render\" (dict \"value\" .Values.plain \"context\" $) | quote }}")), values: map[string]any{"more": "text { } of a CR"}},
	"braces that reach no tpl":       {files: join(values("own: \"{{ .Release.Name }}\"\nrules: {}\n"), data("  own: {{ tpl .Values.own . }}\n  all: {{ toJson .Values.rules | quote }}\n  {{- toYaml .Values.more | nindent 2 }}")), values: map[string]any{"own": "{{ .Release.Name }}", "rules": map[string]any{"{{ a": []any{"{{ $labels.instance }} is down"}}, "more": map[string]any{"b": "{{ printf \"%s\" .Release.Name }}"}}},
	"tpl of files":                   {files: join(map[string]string{"conf/a.conf": "name={{ .Release.Name }}\n", "conf/b.conf": "{{ range $i := until 2 }}{{ $i }}{{ end }}"}, data("  {{- (tpl (.Files.Glob \"conf/*\").AsConfig .) | nindent 2 }}\n  {{- range $p, $_ := .Files.Glob \"conf/*.conf\" }}\n  {{ base $p | replace \".\" \"-\" }}: {{ tpl ($.Files.Get $p) $ | quote }}\n  {{- end }}"))},
	"files":                          {files: join(map[string]string{"f/a.txt": "one\ntwo\n", "f/b.bin": "\x00\x01"}, map[string]string{"templates/s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata:\n{{ (.Files.Glob \"f/*\").AsSecrets | indent 2 }}\n"}, data("{{ range .Files.Lines \"f/a.txt\" }}  k{{ . }}: v\n{{ end }}  none: {{ .Files.Get \"no\" | quote }}"))},
	"the checksum of a file":         {files: join(map[string]string{"templates/sub/config.yaml": object("ConfigMap", "config", "data: {a: {{ .Values.a }}}")}, values("a: 1\n"), data("  sum: {{ include (print $.Template.BasePath \"/sub/config.yaml\") . | sha256sum }}\n  t: {{ .Template.Name }}"))},
	"directories":                    {files: map[string]string{"templates/b/z.yaml": object("Service", "z", ""), "templates/a/y.yml": object("Deployment", "y", ""), "templates/x.txt": object("ServiceAccount", "x", ""), "templates/tests/t.yaml": object("Pod", "t", hook+"test}\n"), "templates/a/_p.tpl": "{{ fail `a partial` }}"}},
	"the order of kinds":             {files: map[string]string{"templates/all.yaml": object("Pod", "p", "") + "---\n" + object("Namespace", "n", "") + "---\n" + object("Service", "b", "") + "---\n" + object("Service", "a", "") + "---\n" + object("Strange", "q", "") + "---\n" + object("CustomResourceDefinition", "d", "") + "---\n" + object("Secret", "s", "")}},
	"hooks with weights":             {files: map[string]string{"templates/h.yaml": object("Job", "one", hook+"\"pre-install,post-upgrade\", helm.sh/hook-weight: \"5\"}\n") + "---\n" + object("Job", "two", hook+"pre-install, helm.sh/hook-weight: \"-5\", helm.sh/hook-delete-policy: \"before-hook-creation,hook-succeeded\"}\n") + "---\n" + object("ConfigMap", "three", ""), "templates/z.yaml": object("Job", "no", hook+"\"no such hook\"}\n")}},
	"empty documents and comments":   {files: map[string]string{"templates/a.yaml": "# nothing\n---\n---\n# c\n" + object("ConfigMap", "a", "") + "---\n\n# the end\n---\n{{- if false }}\nx\n{{- end }}\n", "templates/b.yaml": "{{- /* all */ -}}\n", "templates/c.yaml": "", "templates/d.yaml": "---\n" + object("ConfigMap", "d", "data:\n  a: |\n    ---\n    b\n") + "--- \n" + object("ConfigMap", "e", "")}},
	"CRLF":                           {files: map[string]string{"values.yaml": "a: b\r\nt: \"{{ .Release.Name }}\"\r\n", "templates/a.yaml": "apiVersion: v1\r\nkind: ConfigMap\r\nmetadata:\r\n  name: a\r\n---\r\napiVersion: v1\r\nkind: Secret\r\nmetadata:\r\n  name: {{ tpl .Values.t . }}\r\n"}},
	"BOM":                            {files: map[string]string{"values.yaml": "\xef\xbb\xbfa: b\n", "templates/a.yaml": "\xef\xbb\xbf" + object("ConfigMap", "a", "data: {a: {{ .Values.a }}}\n"), "Chart.yaml": "\xef\xbb\xbfapiVersion: v2\nname: c\nversion: 1.0.0\n"}},
	"other scripts":                  {files: join(values("a: \"héllo 世界 🚀 \\u00a0<&>\"\n'ключ': 1\n"), data("  a: {{ .Values.a | quote }}\n  b: {{ .Values.a | upper | trunc 7 }}\n  c: {{ toJson .Values | squote }}\n  d: {{ toYaml .Values | quote }}"))},
	"numbers of the chart":           {files: join(values("million: 1000000\nexp: 1e6\noctal: 0644\nnew: 0o17\nhex: 0x1F\nlong: 12345678901234567\nfloat: 1.50\nsmall: 0.000001\nneg: -3\nsep: 1_000\ntext: \"0644\"\n"), data("{{ range $k, $v := .Values }}  {{ $k }}: \"{{ $v }} {{ int64 $v }} {{ kindOf $v }}\" # {{ toJson $v }} {{ toYaml $v }}\n{{ end }}"))},
	"numbers of a CR":                {files: join(values("port: 1\n"), data("  a: \"{{ .Values.port }} {{ add .Values.port 1 }} {{ .Values.ratio }} {{ int .Values.port | eq 8080 }} {{ toYaml .Values }}\"")), values: map[string]any{"port": 8080, "ratio": 0.5, "neg": -1}},
	"booleans as text":               {files: join(values("a: \"true\"\nb: yes\nc: off\nd: 'null'\ne: y\nf: True\n"), data("{{ range $k, $v := .Values }}  {{ $k }}: \"{{ $v }} {{ kindOf $v }} {{ ternary 1 2 (eq (toString $v) \"true\") }}\"\n{{ end }}  y: {{ toYaml .Values | quote }}")), values: map[string]any{"a": true, "g": "false"}},
	"capabilities":                   {files: data("  a: {{ .Capabilities.APIVersions.Has \"batch/v1\" }}{{ .Capabilities.APIVersions.Has \"batch/v1/CronJob\" }}{{ .Capabilities.APIVersions.Has \"monitoring.coreos.com/v1\" }}\n  b: {{ .Capabilities.KubeVersion }} {{ .Capabilities.KubeVersion.GitVersion }} {{ .Capabilities.KubeVersion.Minor }}\n  c: {{ .Capabilities.HelmVersion.Version | trunc 2 }}\n  d: {{ semverCompare \">=1.19-0\" .Capabilities.KubeVersion.Version }} {{ (semver \"1.2.3\").Minor }}")},
	"lookup":                         {files: data("  a: {{ (lookup \"v1\" \"Secret\" .Release.Namespace \"x\").data | default dict | len }}\n  b: {{ range (lookup \"v1\" \"Pod\" \"\" \"\").items }}x{{ end }}{{ get (dict) \"x\" }}{{ dig \"data\" \"k\" \"none\" (lookup \"v1\" \"Secret\" \"a\" \"b\") }}")},
	"required":                       {files: data("  a: {{ required \"say a\" .Values.a }}\n  b: {{ if .Values.fail }}{{ fail \"no\" }}{{ end }}"), values: map[string]any{"a": "b"}},
	"values that templates change":   {files: join(map[string]string{"templates/0.yaml": `{{ $_ := set .Values "b" "from 0" }}{{ $_ := unset .Values.m "x" }}`, "templates/z.yaml": `{{ $_ := set .Values "b" "from z" }}{{ $_ := set .Values.m "z" (list 1 "2") }}`}, values("m: {x: 1}\n"), data("  b: {{ .Values.b | quote }}\n  m: {{ toJson .Values.m | quote }}"))},
	"branches and definitions":       {files: join(values("l: [a, {b: c}]\nm: {z: 1, a: 2}\n"), data("{{ range $i, $e := .Values.l }}  k{{ $i }}: {{ toJson $e | quote }}\n{{ else }}  none: x\n{{ end }}{{ range $k, $v := .Values.m -}}\n  {{- printf \"  %s: %v\\n\" $k ($v | toString | quote) }}{{ end }}{{ with .Values.no }}x{{ else with .Values.m }}  w: \"{{ .z }}\"{{ end }}\n  {{ block \"c.block\" . }}b: {{ $.Release.Name }}{{ end }}\n  {{- template \"c.d\" (dict \"x\" 1) }}{{ define \"c.d\" }}\n  d: {{ .x | quote }}{{ end }}"))},
	"random text":                    {files: data("  a: {{ randAlphaNum 50 | b64enc }}\n{{ $ca := genCA \"ca\" 1 }}{{ $cert := genSignedCert \"x\" nil (list \"x.y\") 1 $ca }}  crt: {{ $cert.Cert | b64enc }}\n  n: {{ len $ca.Key | lt 1000 }}\n  u: {{ uuidv4 | len }}")},
	"what a release is":              {files: data("  a: {{ toJson .Release | quote }}\n  b: {{ .Chart.AppVersion }} {{ .Chart.IsRoot }} {{ toJson .Chart.Dependencies | quote }} {{ .Subcharts | len }}\n  c: {{ .Release.Service }}{{ .Release.IsUpgrade }}{{ .Release.Revision }}")},
	"a list of objects":              {files: map[string]string{"templates/l.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n"}},
	"notes":                          {files: join(map[string]string{"templates/NOTES.txt": "{{ .Release.Name }}: {{ include \"db.name\" . }}", "templates/MORENOTES.txt": "no: [object"}, sub("db", map[string]string{"templates/NOTES.txt": "of db"}), data("  a: b"))},
	"YAML in text":                   {files: join(values("extra: |\n  x: {{ .Release.Name }}\n  y: [1, 2]\nres: {limits: {cpu: 100m, memory: 1Gi}}\n"), data("  {{- tpl .Values.extra . | nindent 2 | trimSuffix \"\\n\" }}\n  r: {{ toYaml .Values.res | indent 4 | quote }}\n  p: {{ toYamlPretty .Values.res | quote }}\n  t: {{ toToml .Values.res | quote }}\n  {{- with .Values.res }}\n  f: {{ (fromYaml (toYaml .)).limits.cpu }} {{ (fromJson \"[\").Error | quote }} {{ fromYamlArray \"[1, a]\" | len }}\n  {{- end }}"))},
	"anchors":                        {files: map[string]string{"values.yaml": "base: &b {a: 1, b: 2}\nover:\n  <<: *b\n  b: 3\n", "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: &l {app: x}\n  annotations: *l\ndata: {{ toJson .Values.over }}\n"}},
	"a text with template actions":   {files: join(values("a: b\n"), data("  alert: 'Pod {{ \"{{\" }} $labels.pod {{ \"}}\" }} is {{ `{{ $value }}` }}'\n  r: {{ regexReplaceAll \"(b)\" .Values.a \"${1}x\" }} {{ \"a.b\" | replace \".\" \"-\" }} {{ list \"b\" \"a\" | sortAlpha | join \",\" }} {{ now | date \"2006\" | len }}"))},
	"two documents of values":        {files: join(values("a: 1\nm: {x: 1}\n---\nm: {y: 2}\n"), data("  a: {{ toJson .Values | quote }}"))},
	"a chart of the first version":   {files: join(map[string]string{"Chart.yaml": "name: c\nversion: 1.0.0\n", "requirements.yaml": "dependencies: [{name: db, version: 1.x.x, condition: db.on, repository: \"\"}]\n"}, sub("db", nil), values("db: {on: true}\n"), data("  a: {{ .Files.Get \"requirements.yaml\" | quote }}"))},
}
