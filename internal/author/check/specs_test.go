package check

import "testing"

func TestArgumentSpecsFitTheDefinition(t *testing.T) {
	const specs = "roles/r/meta/argument_specs.yml"
	const typed = `              properties:
                count: {type: integer}
                mode: {type: string, enum: [fast, safe]}
                users: {type: array}
`
	for name, test := range map[string]struct {
		options, schema string
		want            []string
	}{
		"the same":                                   {"{count: {type: int}, mode: {choices: [safe, fast, slow]}, users: {type: list}}", typed, nil},
		"what Ansible converts":                      {"{count: {type: str}, users: {type: str}}", typed, nil},
		"another type":                               {"\n      count: {type: bool}\n      users: {type: dict}", typed, []string{specs + ":4 warning argument-spec", specs + ":5 warning argument-spec"}},
		"a value that the role refuses":              {"\n      mode: {choices: [fast]}", typed, []string{specs + ":4 warning argument-spec"}},
		"what no resource can give":                  {"\n      nothing: {required: true}", typed, []string{specs + ":4 error argument-spec"}},
		"what it need not give":                      {"\n      nothing: {type: int}", typed, nil},
		"what an open schema may have":               {"{nothing: {required: true}}", "              x-kubernetes-preserve-unknown-fields: true\n", nil},
		"what the watch sets":                        {"{given: {required: true}}", typed, nil},
		"what the role's own defaults have":          {"{mine: {required: true}}", typed, nil},
		"what the operator gives to each":            {"{ansible_operator_meta: {required: true}, _example_com_thing: {required: true}}", typed, nil},
		"what a task computes comes after the check": {"{late: {required: true}}", typed, []string{specs + ":3 error argument-spec"}},
	} {
		t.Run(name, func(t *testing.T) {
			watch := thing()
			watch.Vars = map[string]any{"given": 1}
			p := project(t, watch, map[string]string{
				"config/crd.yaml": definition + test.schema, specs: "argument_specs:\n  main:\n    options: " + test.options + "\n",
				"roles/r/defaults/main.yml": "mine: 1\n", "roles/r/tasks/main.yml": "- set_fact: {late: 1}\n",
			})
			p.argumentSpec(p.Units[0])
			want(t, p, test.want...)
		})
	}
}
