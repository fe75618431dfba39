package outcomes

// loops are plays about conditions, loops and repetition.
func loops() map[string]play {
	return map[string]play{
		"an assertion does not hold": {tasks: `
- name: Check
  ansible.builtin.assert: {that: size == 4, fail_msg: "size is {{ size }}, not 4"}
`, expected: expected{reason: failed, exit: 2, message: "size is 3, not 4"}},
		"one item of a loop fails": {tasks: `
- name: Each
  ansible.builtin.fail: {msg: "no {{ item }}"}
  when: item == 'b'
  loop: [a, b, c]
`, expected: expected{reason: failed, exit: 2, message: "(item=b) no b"}},
		"a failed item of a loop is ignored": {tasks: `
- name: Each
  ansible.builtin.fail: {msg: "no {{ item }}"}
  when: item == 'b'
  loop: [a, b, c]
  ignore_errors: true
`},
		"a failed item of a loop is rescued": {tasks: `
- name: Try
  block:
    - name: Each
      ansible.builtin.fail: {msg: "no {{ item }}"}
      loop: [a, b]
  rescue:
    - name: Mend
      ansible.builtin.debug: {msg: mended}
`},
		"many items of a loop fail": {tasks: `
- name: Each
  ansible.builtin.fail: {msg: "no {{ item }}"}
  loop: "{{ range(20) | list }}"
`, expected: expected{reason: failed, exit: 2, message: "(item=4) no 4"}},
		"until never comes true": {tasks: `
- name: Wait
  ansible.builtin.command: "false"
  register: said
  until: said is succeeded
  retries: 1
  delay: 0
`, expected: expected{reason: failed, exit: 2, message: "task [@Wait]"}},
		"until comes true at the second look": {tasks: `
- name: Wait
  ansible.builtin.shell: test -e $ANSIBLE_LOCAL_TEMP/seen || { touch $ANSIBLE_LOCAL_TEMP/seen; exit 1; }
  register: said
  until: said is succeeded
  retries: 3
  delay: 0
`},
	}
}
