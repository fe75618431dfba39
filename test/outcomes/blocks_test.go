package outcomes

// blocks are plays about block, rescue and always, and about failures that a task
// is told not to mind.
func blocks() map[string]play {
	return map[string]play{
		"all goes well": {tasks: `
- name: Say
  ansible.builtin.debug: {msg: hello}
- name: Skip
  ansible.builtin.debug: {msg: no}
  when: false
- name: Change
  ansible.builtin.command: "true"
`},
		"a task fails": {tasks: `
- name: Look for the Secret
  ansible.builtin.fail: {msg: there is no Secret}
- name: Never
  ansible.builtin.debug: {msg: never}
`, expected: expected{reason: failed, exit: 2, message: "task [@Look for the Secret], host [localhost]: there is no Secret"}},
		"a failure is rescued": {tasks: `
- name: Try
  block:
    - name: Fail
      ansible.builtin.fail: {msg: boom}
  rescue:
    - name: Mend
      ansible.builtin.debug: {msg: mended}
`},
		"the rescue fails": {tasks: `
- name: Try
  block:
    - name: Fail
      ansible.builtin.fail: {msg: boom}
  rescue:
    - name: Mend
      ansible.builtin.fail: {msg: cannot be mended}
`, expected: expected{reason: failed, exit: 2, message: "task [@Mend], host [localhost]: cannot be mended"}},
		"the rescue raises the failure again": {tasks: `
- name: Try
  block:
    - name: Fail
      ansible.builtin.fail: {msg: boom}
  rescue:
    - name: Tell
      ansible.builtin.fail: {msg: "{{ ansible_failed_task.name }} said {{ ansible_failed_result.msg }}"}
`, expected: expected{reason: failed, exit: 2, message: "Fail said boom"}},
		"always follows a failure that nobody rescues": {tasks: `
- name: Try
  block:
    - name: Fail
      ansible.builtin.fail: {msg: boom}
  always:
    - name: Clean
      ansible.builtin.debug: {msg: clean}
`, expected: expected{reason: failed, exit: 2, message: "task [@Fail], host [localhost]: boom"}},
		"always follows a rescued failure": {tasks: `
- name: Try
  block:
    - name: Fail
      ansible.builtin.fail: {msg: boom}
  rescue:
    - name: Mend
      ansible.builtin.debug: {msg: mended}
  always:
    - name: Clean
      ansible.builtin.debug: {msg: clean}
`},
		"always fails after a rescue": {tasks: `
- name: Try
  block:
    - name: Fail
      ansible.builtin.fail: {msg: boom}
  rescue:
    - name: Mend
      ansible.builtin.debug: {msg: mended}
  always:
    - name: Clean
      ansible.builtin.fail: {msg: cannot be cleaned}
`, expected: expected{reason: failed, exit: 2, message: "task [@Clean], host [localhost]: cannot be cleaned", silent: "boom"}},
		"always fails after a failure that nobody rescues": {tasks: `
- name: Try
  block:
    - name: Fail
      ansible.builtin.fail: {msg: boom}
  always:
    - name: Clean
      ansible.builtin.fail: {msg: cannot be cleaned}
`, expected: expected{reason: failed, exit: 2, message: "boom"}},
		"an outer rescue takes what an inner block leaves": {tasks: `
- name: Outer
  block:
    - name: Inner
      block:
        - name: Fail
          ansible.builtin.fail: {msg: boom}
      always:
        - name: Clean
          ansible.builtin.debug: {msg: clean}
  rescue:
    - name: Mend
      ansible.builtin.debug: {msg: mended}
`},
		"an outer rescue takes the failure of an inner one": {tasks: `
- name: Outer
  block:
    - name: Inner
      block:
        - name: Fail
          ansible.builtin.fail: {msg: boom}
      rescue:
        - name: Mend
          ansible.builtin.fail: {msg: cannot be mended}
  rescue:
    - name: Mend it all
      ansible.builtin.debug: {msg: mended}
`},
		"a rescue inside of a rescue": {tasks: `
- name: Outer
  block:
    - name: Fail
      ansible.builtin.fail: {msg: boom}
  rescue:
    - name: Inner
      block:
        - name: Fail again
          ansible.builtin.fail: {msg: boom again}
      rescue:
        - name: Mend
          ansible.builtin.debug: {msg: mended}
`},
		"a failure after one that was rescued": {tasks: `
- name: Try
  block:
    - name: Fail
      ansible.builtin.fail: {msg: boom}
  rescue:
    - name: Mend
      ansible.builtin.debug: {msg: mended}
- name: Fail for good
  ansible.builtin.fail: {msg: for good}
`, expected: expected{reason: failed, exit: 2, message: "task [@Fail for good], host [localhost]: for good", silent: "boom"}},
		"an always section rescues a failure of its own after one that nobody rescues": {tasks: `
- name: Try
  block:
    - name: Fail
      ansible.builtin.fail: {msg: boom}
  always:
    - name: Clean
      block:
        - name: Fail to clean
          ansible.builtin.fail: {msg: cannot be cleaned}
      rescue:
        - name: Mend
          ansible.builtin.debug: {msg: mended}
`, expected: expected{reason: failed, exit: 2, message: "host [localhost]: "}},
		"an error is ignored": {tasks: `
- name: Fail
  ansible.builtin.fail: {msg: boom}
  ignore_errors: true
`},
		"errors of a whole block are ignored": {tasks: `
- name: Try
  ignore_errors: true
  block:
    - name: Fail
      ansible.builtin.fail: {msg: boom}
    - name: Fail again
      ansible.builtin.command: "false"
`},
		"an error is ignored, another is not": {tasks: `
- name: Fail
  ansible.builtin.fail: {msg: boom}
  ignore_errors: true
- name: Fail for good
  ansible.builtin.fail: {msg: for good}
`, expected: expected{reason: failed, exit: 2, message: "for good", silent: "boom"}},
		"whether an error is ignored is a template": {tasks: `
- name: Fail
  ansible.builtin.fail: {msg: boom}
  ignore_errors: "{{ 1 == 1 }}"
- name: Fail for good
  ansible.builtin.fail: {msg: for good}
  ignore_errors: "{{ 1 == 2 }}"
`, expected: expected{reason: failed, exit: 2, message: "for good", silent: "boom"}},
		"failed_when finds a failure": {tasks: `
- name: Check
  ansible.builtin.command: echo broken
  register: said
  failed_when: "'broken' in said.stdout"
`, expected: expected{reason: failed, exit: 2, message: "task [@Check], host [localhost]: "}},
		"failed_when forgives a failure": {tasks: `
- name: Check
  ansible.builtin.command: "false"
  failed_when: false
`},
		"an ignored failure is looked at later": {tasks: `
- name: Fail
  ansible.builtin.command: "false"
  ignore_errors: true
  register: said
- name: Look
  ansible.builtin.fail: {msg: it did fail}
  when: said is failed
`, expected: expected{reason: failed, exit: 2, message: "it did fail"}},
		"any_errors_fatal on a block": {tasks: `
- name: Try
  any_errors_fatal: true
  block:
    - name: Fail
      ansible.builtin.fail: {msg: boom}
`, expected: expected{reason: failed, exit: 2, message: "boom"}},
		"any_errors_fatal with a rescue": {tasks: `
- name: Try
  any_errors_fatal: true
  block:
    - name: Fail
      ansible.builtin.fail: {msg: boom}
  rescue:
    - name: Mend
      ansible.builtin.debug: {msg: mended}
`},
	}
}
