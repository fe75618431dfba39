package outcomes

// flow are plays about what happens between tasks: handlers, meta, includes.
func flow() map[string]play {
	return map[string]play{
		"a handler fails": {tasks: `
- name: Change
  ansible.builtin.command: "true"
  notify: Restart
`, handlers: `
- name: Restart
  ansible.builtin.fail: {msg: cannot restart}
`, expected: expected{reason: failed, exit: 2, message: "cannot restart"}},
		"a handler runs": {tasks: `
- name: Change
  ansible.builtin.command: "true"
  notify: Restart
`, handlers: `
- name: Restart
  ansible.builtin.debug: {msg: restarted}
`},
		"a handler fails when it is flushed": {tasks: `
- name: Change
  ansible.builtin.command: "true"
  notify: Restart
- name: Flush
  ansible.builtin.meta: flush_handlers
- name: Never
  ansible.builtin.debug: {msg: never}
`, handlers: `
- name: Restart
  ansible.builtin.fail: {msg: cannot restart}
`, expected: expected{reason: failed, exit: 2, message: "cannot restart"}},
		"a flushed handler's failure is rescued": {tasks: `
- name: Try
  block:
    - name: Change
      ansible.builtin.command: "true"
      notify: Restart
    - name: Flush
      ansible.builtin.meta: flush_handlers
  rescue:
    - name: Mend
      ansible.builtin.debug: {msg: mended}
`, handlers: `
- name: Restart
  ansible.builtin.fail: {msg: cannot restart}
`},
		"handlers are forced after a failure": {tasks: `
- name: Change
  ansible.builtin.command: "true"
  notify: Restart
- name: Fail
  ansible.builtin.fail: {msg: boom}
`, handlers: `
- name: Restart
  ansible.builtin.debug: {msg: restarted}
`, args: "--force-handlers", expected: expected{reason: failed, exit: 2, message: "boom"}},
		"a handler that nobody has": {tasks: `
- name: Change
  ansible.builtin.command: "true"
  notify: Restart
`, expected: expected{reason: noStats, exit: 1, message: "The requested handler '********' was not found"}},
		"end_play": {tasks: `
- name: End
  ansible.builtin.meta: end_play
- name: Never
  ansible.builtin.fail: {msg: never}
`},
		"end_host before any task": {tasks: `
- name: End
  ansible.builtin.meta: end_host
- name: Never
  ansible.builtin.fail: {msg: never}
`},
		"end_play after a task": {tasks: `
- name: Say
  ansible.builtin.debug: {msg: hello}
- name: End
  ansible.builtin.meta: end_play
- name: Never
  ansible.builtin.fail: {msg: never}
`},
		"end_play in an always section after a failure": {tasks: `
- name: Try
  block:
    - name: Fail
      ansible.builtin.fail: {msg: boom}
  always:
    - name: End
      ansible.builtin.meta: end_play
`, expected: expected{reason: failed, exit: 2, message: "boom"}, included: &expected{reason: failed, message: "boom"}},
		"end_play in a rescue": {tasks: `
- name: Try
  block:
    - name: Fail
      ansible.builtin.fail: {msg: boom}
  rescue:
    - name: End
      ansible.builtin.meta: end_play
- name: Never
  ansible.builtin.fail: {msg: never}
`},
		"end_host after a task": {tasks: `
- name: Say
  ansible.builtin.debug: {msg: hello}
- name: End
  ansible.builtin.meta: end_host
- name: Never
  ansible.builtin.fail: {msg: never}
`},
		"end_host in a rescue": {tasks: `
- name: Try
  block:
    - name: Fail
      ansible.builtin.fail: {msg: boom}
  rescue:
    - name: End
      ansible.builtin.meta: end_host
- name: Never
  ansible.builtin.fail: {msg: never}
`},
		"clear_host_errors in an always section after a failure": {tasks: `
- name: Try
  block:
    - name: Fail
      ansible.builtin.fail: {msg: boom}
  always:
    - name: Clear
      ansible.builtin.meta: clear_host_errors
- name: After
  ansible.builtin.debug: {msg: after}
`, expected: expected{reason: failed, message: "boom"}},
		"noop": {tasks: `
- name: Nothing
  ansible.builtin.meta: noop
- name: Say
  ansible.builtin.debug: {msg: hello}
`},
		"end_role": {tasks: `
- name: Say
  ansible.builtin.debug: {msg: hello}
- name: End
  ansible.builtin.meta: end_role
- name: Never
  ansible.builtin.fail: {msg: never}
`, playbook: `
- name: Play
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Take
      ansible.builtin.include_role: {name: ending}
`, files: map[string]string{"roles/ending/tasks/main.yml": `
- name: Say
  ansible.builtin.debug: {msg: hello}
- name: End
  ansible.builtin.meta: end_role
- name: Never
  ansible.builtin.fail: {msg: never}
`}},
		"an unknown meta task": {tasks: `
- name: End
  ansible.builtin.meta: end_world
`, expected: expected{reason: noStats, exit: 1, message: "end_world"}},
		"tasks to include are missing": {tasks: `
- name: Take
  ansible.builtin.include_tasks: nowhere.yml
`, expected: expected{reason: failed, exit: 2, message: "nowhere.yml"}},
		"tasks to import are missing": {tasks: `
- name: Take
  ansible.builtin.import_tasks: nowhere.yml
`, expected: expected{reason: noStats, exit: 1, message: "nowhere.yml"}, included: &expected{reason: failed, exit: 2, message: "nowhere.yml"}},
		"tasks to include do not parse": {tasks: `
- name: Take
  ansible.builtin.include_tasks: broken.yml
`, files: map[string]string{"broken.yml": "- name: [\n"}, expected: expected{reason: noStats, exit: 4, message: "broken.yml"}},
		"included tasks fail": {tasks: `
- name: Take
  ansible.builtin.include_tasks: failing.yml
`, files: map[string]string{"failing.yml": "- name: Fail\n  ansible.builtin.fail: {msg: boom}\n"}, expected: expected{reason: failed, exit: 2, message: "boom"}},
		"a missing file to include is rescued": {tasks: `
- name: Try
  block:
    - name: Take
      ansible.builtin.include_tasks: nowhere.yml
  rescue:
    - name: Mend
      ansible.builtin.debug: {msg: mended}
`, expected: expected{reason: failed, message: "nowhere.yml"}},
		"a role to include is missing": {tasks: `
- name: Take
  ansible.builtin.include_role: {name: nowhere}
`, expected: expected{reason: failed, exit: 2, message: "nowhere"}},
		"a role to import is missing": {tasks: `
- name: Take
  ansible.builtin.import_role: {name: nowhere}
`, expected: expected{reason: noStats, exit: 1, message: "nowhere"}, included: &expected{reason: failed, exit: 2, message: "nowhere"}},
	}
}
