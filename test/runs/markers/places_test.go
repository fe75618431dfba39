package markers_test

// place is where text is displayed: tasks in which the variable cr is the text.
type place struct{ name, tasks string }

// places are where a run goes on after them.
func places() []place {
	return []place{
		{"a task's name", "- name: '{{ cr }}'\n  ansible.builtin.debug: {msg: hi}\n"},
		{"a block's name", "- name: '{{ cr }}'\n  block:\n  - ansible.builtin.debug: {msg: hi}\n"},
		{"a loop's label", "- ansible.builtin.debug: {msg: hi}\n  loop: [a]\n  loop_control: {label: '{{ cr }}'}\n"},
		{"a loop's items", "- ansible.builtin.debug: {msg: hi}\n  loop: ['{{ cr }}', b]\n"},
		{"a loop's items that fail", "- ansible.builtin.fail: {msg: hi}\n  loop: ['{{ cr }}']\n  ignore_errors: true\n"},
		{"fail, ignored", "- ansible.builtin.fail: {msg: '{{ cr }}'}\n  ignore_errors: true\n"},
		{"fail, rescued", "- block:\n  - ansible.builtin.fail: {msg: '{{ cr }}'}\n  rescue:\n  - ansible.builtin.debug: {msg: '{{ ansible_failed_result.msg }}'}\n"},
		{"assert", "- ansible.builtin.assert: {that: [false], fail_msg: '{{ cr }}'}\n  ignore_errors: true\n"},
		{"assert that holds", "- ansible.builtin.assert: {that: [true], success_msg: '{{ cr }}'}\n"},
		{"debug", "- ansible.builtin.debug: {msg: '{{ cr }}'}\n- ansible.builtin.debug: {var: cr}\n"},
		{"debug, verbose", "- ansible.builtin.debug: {msg: '{{ cr }}', verbosity: 1}\n"},
		{"facts and statistics", "- ansible.builtin.set_fact: {shown: '{{ cr }}'}\n- ansible.builtin.set_stats: {data: {shown: '{{ cr }}'}}\n"},
		{"a command's output", "- ansible.builtin.command: {cmd: cat, stdin: '{{ cr }}'}\n"},
		{"a command's standard error", "- ansible.builtin.shell: {cmd: 'cat >&2; exit 3', stdin: '{{ cr }}'}\n  ignore_errors: true\n"},
		{"a warning", "- warns: {text: '{{ cr }}'}\n"},
		{"a deprecation", "- warns: {text: '{{ cr }}', deprecated: true}\n"},
		{"a copy's diff", "- ansible.builtin.copy: {content: '{{ cr }}', dest: '{{ playbook_dir }}/copy'}\n  diff: true\n"},
		{"a block's diff", "- ansible.builtin.blockinfile: {path: '{{ playbook_dir }}/block', block: '{{ cr }}', create: true}\n  diff: true\n"},
		{"variables that are missing", "- ansible.builtin.include_vars: '{{ cr }}'\n  ignore_errors: true\n"},
		{"a file that is missing", "- ansible.builtin.debug: {msg: \"{{ lookup('file', cr) }}\"}\n  ignore_errors: true\n"},
		{"an argument that is none", "- ansible.builtin.file: {path: /, state: '{{ cr }}'}\n  ignore_errors: true\n"},
		{"retries", "- ansible.builtin.debug: {msg: '{{ cr }}'}\n  register: tried\n  until: tried.attempts | default(1) > 1\n  retries: 2\n  delay: 0\n  ignore_errors: true\n"},
		{"what is skipped", "- name: '{{ cr }}'\n  ansible.builtin.debug: {msg: hi}\n  when: false\n  loop: ['{{ cr }}']\n"},
	}
}

// ends are where a run ends: on each host, with a text of its own. From some of them Ansible
// itself ends the whole run without statistics, whatever the text is: from a file's name that
// is too long, and before 2.21 from a number that is none.
func ends() []place {
	return []place{
		{"fail", "- ansible.builtin.fail: {msg: '{{ cr }}'}\n"},
		{"the failure of a module", "- ansible.builtin.file: {path: '{{ cr }}/a/b', state: file}\n"},
		{"tasks that are missing", "- ansible.builtin.include_tasks: '{{ cr }}'\n"},
		{"a role that is missing", "- ansible.builtin.include_role: {name: '{{ cr }}'}\n"},
		{"a number that is none", "- ansible.builtin.debug: {msg: hi}\n  throttle: '{{ cr }}'\n"},
	}
}

// warns is a module that warns.
const warns = `from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule(argument_spec={"text": {"type": "str"}, "deprecated": {"type": "bool"}})
if module.params["deprecated"]:
    module.deprecate(module.params["text"], version="9.9", collection_name="a.b")
else:
    module.warn(module.params["text"])
module.exit_json()
`
