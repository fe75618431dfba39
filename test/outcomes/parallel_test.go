package outcomes

// parallel are plays about tasks beside others.
func parallel() map[string]play {
	return map[string]play{
		"an asynchronous task succeeds": {tasks: `
- name: Work
  ansible.builtin.command: "true"
  async: 60
  poll: 1
`},
		"an asynchronous task fails": {tasks: `
- name: Work
  ansible.builtin.command: "false"
  async: 60
  poll: 1
`, expected: expected{reason: failed, exit: 2, message: "task [@Work]"}},
		"an asynchronous task takes too long": {tasks: `
- name: Work
  ansible.builtin.command: sleep 60
  async: 1
  poll: 2
`, expected: expected{reason: failed, exit: 2, message: "task [@Work]"}},
		"an asynchronous task is looked at later and has failed": {tasks: `
- name: Work
  ansible.builtin.command: "false"
  async: 60
  poll: 0
  register: work
- name: Look
  ansible.builtin.async_status: {jid: "{{ work.ansible_job_id }}"}
  register: said
  until: said is finished
  retries: 60
  delay: 1
`, expected: expected{reason: failed, exit: 2, message: "task [@Look]"}},
		"an asynchronous task is looked at later and has succeeded": {tasks: `
- name: Work
  ansible.builtin.command: "true"
  async: 60
  poll: 0
  register: work
- name: Look
  ansible.builtin.async_status: {jid: "{{ work.ansible_job_id }}"}
  register: said
  until: said is finished
  retries: 60
  delay: 1
`},
		"an asynchronous task fails and nobody looks": {tasks: `
- name: Work
  ansible.builtin.command: "false"
  async: 60
  poll: 0
`},
		"run_once fails": {tasks: `
- name: Once
  ansible.builtin.fail: {msg: boom}
  run_once: true
`, expected: expected{reason: failed, exit: 2, message: "boom"}},
		"throttle": {tasks: `
- name: Each
  ansible.builtin.debug: {msg: "{{ item }}"}
  loop: [a, b]
  throttle: 1
`},
	}
}
