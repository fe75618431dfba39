package safevars

import (
	"fmt"
	"strings"
)

// templates are texts that run COMMAND where Ansible takes them for templates.
// The control run shows that each of them does.
var templates = []string{
	`{{ lookup('pipe', 'COMMAND') }}`,
	`{{ lookup("pipe", "COMMAND") }}`,
	`{{lookup('pipe','COMMAND')}}`,
	`{{ lookup('ansible.builtin.pipe', 'COMMAND') }}`,
	`{{ lookup('ansible.legacy.pipe', 'COMMAND') }}`,
	`{{ query('pipe', 'COMMAND') }}`,
	`{{ q('pipe', 'COMMAND') }}`,
	`{{ lookup('lines', 'COMMAND') }}`,
	`{{ query('ansible.builtin.lines', 'COMMAND') }}`,
	`{{- lookup('pipe', 'COMMAND') -}}`,
	`{{+ lookup('pipe', 'COMMAND') }}`,
	"{{\n lookup(\n 'pipe',\n 'COMMAND'\n )\n}}",
	"{{\tlookup('pipe',\t'COMMAND')\t}}",
	`before {{ lookup('pipe', 'COMMAND') }} after`,
	"line\n{{ lookup('pipe', 'COMMAND') }}\nline\n",
	`{{ 1 }}{{ lookup('pipe', 'COMMAND') }}`,
	`{% if lookup('pipe', 'COMMAND') %}{% endif %}`,
	`{% if true %}{{ lookup('pipe', 'COMMAND') }}{% endif %}`,
	`{%- set x = lookup('pipe', 'COMMAND') -%}{{ x }}`,
	`{% set x %}{{ lookup('pipe', 'COMMAND') }}{% endset %}{{ x }}`,
	`{% for x in query('pipe', 'COMMAND') %}{{ x }}{% endfor %}`,
	`{% macro m() %}{{ lookup('pipe', 'COMMAND') }}{% endmacro %}{{ m() }}`,
	`{% filter upper %}{{ lookup('pipe', 'COMMAND') }}{% endfilter %}`,
	`{% with x = lookup('pipe', 'COMMAND') %}{{ x }}{% endwith %}`,
	`{% call(x) (lookup('pipe', 'COMMAND')).format() %}{% endcall %}{{ lookup('pipe', 'COMMAND') }}`,
	`{# comment #}{{ lookup('pipe', 'COMMAND') }}`,
	`{% raw %}{{ raw }}{% endraw %}{{ lookup('pipe', 'COMMAND') }}`,
	`{{ 'x' if lookup('pipe', 'COMMAND') else 'y' }}`,
	`{{ lookup('pipe', 'COMMAND') | default('x') }}`,
	`{{ missing | default(lookup('pipe', 'COMMAND')) }}`,
	`{{ [lookup('pipe', 'COMMAND')] | first }}`,
	`{{ {'k': lookup('pipe', 'COMMAND')}.k }}`,
	`{{ (lookup)('pipe', 'COMMAND') }}`,
	`{{ lookup('pi' ~ 'pe', 'COMMAND') }}`,
	`{{ lookup(*['pipe', 'COMMAND']) }}`,
	`{{ ['COMMAND'] | map('extract', {'COMMAND': lookup('pipe', 'COMMAND')}) | list }}`,
	`{{ lookup('pipe', 'COMMAND', errors='ignore') }}`,
	`{{ lookup('pipe', 'COMMAND', wantlist=true) }}`,
	`{{ now() }}{{ lookup('pipe', 'COMMAND') }}`,
	`{{ lookup('pipe', "\u0043OMMAND" and 'COMMAND') }}`,
	`{{ lookup('first_found', 'x', skip=true) }}{{ lookup('pipe', 'COMMAND') }}`,
	`{{ undef('x') if false else lookup('pipe', 'COMMAND') }}`,
	`{{ lookup('pipe', 'COMMAND') is string }}`,
	`{{ not lookup('pipe', 'COMMAND') }}`,
	"\ufeff{{ lookup('pipe', 'COMMAND') }}",
	"\u2028{{ lookup('pipe', 'COMMAND') }}\x00",
	`{{ "{{ lookup('pipe', 'COMMAND') }}" }}{{ lookup('pipe', 'COMMAND') }}`,
}

// other are texts that could run COMMAND where something reads them that is no
// template: a condition, a second template, YAML, a shell.
var other = []string{
	`lookup('pipe', 'COMMAND')`,
	`lookup('pipe', 'COMMAND') or true`,
	`x == lookup('pipe', 'COMMAND')`,
	`' ~ lookup('pipe', 'COMMAND') ~ '`,
	`" ~ lookup('pipe', 'COMMAND') ~ "`,
	`}} {{ lookup('pipe', 'COMMAND') }} {{`,
	`') }} {{ lookup('pipe', 'COMMAND`,
	`%} {{ lookup('pipe', 'COMMAND') }} {%`,
	"#jinja2: variable_start_string:'[[', variable_end_string:']]'\n[[ lookup('pipe', 'COMMAND') ]]",
	`{{ '{{' }} lookup('pipe', 'COMMAND') {{ '}}' }}`,
	`!!python/object/apply:os.system ["COMMAND"]`,
	`!unsafe "{{ lookup('pipe', 'COMMAND') }}"`,
	`{"__ansible_unsafe": "{{ lookup('pipe', 'COMMAND') }}"}`,
	`{"k": "{{ lookup('pipe', 'COMMAND') }}"}`,
	"k: \"{{ lookup('pipe', 'COMMAND') }}\"\n",
	"- \"{{ lookup('pipe', 'COMMAND') }}\"\n",
	`['{{ lookup("pipe", "COMMAND") }}']`,
	`msg={{ lookup('pipe', 'COMMAND') }}`,
	`ansible.builtin.command COMMAND`,
	`{{ ''.__class__.__mro__[1].__subclasses__() }}{{ cycler.__init__.__globals__.os.system('COMMAND') }}`,
	`{{ self.__init__.__globals__.__builtins__.__import__('os').system('COMMAND') }}`,
}

// texts fills payloads with commands whose markers tell place and payload.
func texts(payloads []string, dir, place string) []any {
	filled := make([]any, len(payloads))
	for i, payload := range payloads {
		command := fmt.Sprintf("touch %s/%s-%d", dir, place, i)
		filled[i] = strings.ReplaceAll(payload, "COMMAND", command)
	}
	return filled
}

// named gives each text a name: prefix0, prefix1 and so on.
func named(prefix string, texts []any) map[string]any {
	m := make(map[string]any, len(texts))
	for i, text := range texts {
		m[fmt.Sprintf("%s%d", prefix, i)] = text
	}
	return m
}
