package outcomes

import "time"

// A file that ansible-vault encrypted with a password that nobody has.
const vault = "$ANSIBLE_VAULT;1.1;AES256\n" +
	"36663962646364663966333235346232393063353366623365363530306362646165396232393833\n" +
	"3531366366373362663232393564666462643866353137320a306563663064636665613134333734\n" +
	"32353335636562323362623065313564663861336362376635333837323562386339353737366638\n" +
	"3063653332343065380a633165323531643236396231633261363339356637653538643233396133\n" +
	"3435\n"

// faults are plays that are wrong, or that meet with something that is.
func faults() map[string]play {
	return map[string]play{
		"a syntax error": {tasks: `
- name: Broken
  ansible.builtin.debug: {msg: [}
`, expected: expected{reason: noStats, exit: 4, message: "YAML"}},
		"two modules in a task": {tasks: `
- name: Both
  ansible.builtin.debug: {msg: a}
  ansible.builtin.fail: {msg: b}
`, expected: expected{reason: noStats, exit: 4, message: "conflicting action statements"}},
		"a keyword that does not exist": {tasks: `
- name: Say
  ansible.builtin.debug: {msg: a}
  whenever: true
`, expected: expected{reason: noStats, exit: 4, message: "whenever"}},
		"a module that does not exist": {tasks: `
- name: Try
  community.nowhere.nothing: {}
`, expected: expected{reason: noStats, exit: 4, message: "community.nowhere.nothing"}},
		"an argument that does not exist": {tasks: `
- name: Try
  ansible.builtin.file: {path: /tmp, colour: red}
`, expected: expected{reason: failed, exit: 2, message: "colour"}},
		"an argument that is missing": {tasks: `
- name: Try
  ansible.builtin.file: {state: directory}
`, expected: expected{reason: failed, exit: 2, message: "path"}},
		"no tasks": {tasks: "[]\n"},
		"a variable that is not defined": {tasks: `
- name: Say
  ansible.builtin.debug: {msg: "{{ nobody_defines_this }}"}
`, expected: expected{reason: failed, exit: 2, message: "'nobody_defines_this' is undefined"}},
		"a variable that is not defined in a condition": {tasks: `
- name: Say
  ansible.builtin.debug: {msg: a}
  when: nobody_defines_this
`, expected: expected{reason: failed, exit: 2, message: "nobody_defines_this"}},
		"an undefined variable is rescued": {tasks: `
- name: Try
  block:
    - name: Say
      ansible.builtin.debug: {msg: "{{ nobody_defines_this }}"}
  rescue:
    - name: Mend
      ansible.builtin.debug: {msg: mended}
`},
		"a template that does not parse": {tasks: `
- name: Say
  ansible.builtin.debug: {msg: "{{ size "}
`, expected: expected{reason: failed, exit: 2, message: "task [@Say]"}},
		"a filter that does not exist": {tasks: `
- name: Say
  ansible.builtin.debug: {msg: "{{ size | no_such_filter }}"}
`, expected: expected{reason: failed, exit: 2, message: "no_such_filter"}},
		"an expression that fails": {tasks: `
- name: Say
  ansible.builtin.debug: {msg: "{{ 1 / 0 }}"}
`, expected: expected{reason: failed, exit: 2, message: "zero"}},
		"a condition that is no condition": {tasks: `
- name: Say
  ansible.builtin.debug: {msg: a}
  when: "'text'"
`, expected: expected{reason: failed, exit: 2, message: "onditional"}},
		"a file is encrypted and there is no password": {tasks: `
- name: Read
  ansible.builtin.include_vars: secret.yml
`, files: map[string]string{"secret.yml": vault}, expected: expected{reason: failed, exit: 2, message: "ANSIBLE_VAULT_PASSWORD_FILE"}},
		"tasks to import are encrypted and there is no password": {tasks: `
- name: Take
  ansible.builtin.import_tasks: secret.yml
`, files: map[string]string{"secret.yml": vault}, expected: expected{reason: noStats, exit: 1, message: "ANSIBLE_VAULT_PASSWORD_FILE"}, included: &expected{reason: failed, exit: 2, message: "ANSIBLE_VAULT_PASSWORD_FILE"}},
		"a variable is encrypted and there is no password": {tasks: `
- name: Say
  ansible.builtin.debug: {msg: "{{ password }}"}
  vars:
    password: !vault |
` + indent(indent(vault)), expected: expected{reason: failed, exit: 2, message: "ANSIBLE_VAULT_PASSWORD_FILE"}},
		"a task under no_log fails": {tasks: `
- name: Log in
  ansible.builtin.fail: {msg: the password is hunter2}
  no_log: true
`, expected: expected{reason: failed, exit: 2, message: "task [@Log in], host [localhost]: the output has been hidden", silent: "hunter2"}},
		"an item of a loop under no_log fails": {tasks: `
- name: Log in
  ansible.builtin.fail: {msg: "the password is {{ item }}"}
  loop: [hunter2]
  no_log: true
`, expected: expected{reason: failed, exit: 2, message: "hidden", silent: "hunter2"}},
		"an interpreter is missing": {tasks: `
- name: Ping
  ansible.builtin.ping:
  vars: {ansible_python_interpreter: /nowhere/python}
`, expected: expected{reason: failed, exit: 2, message: "'/nowhere/python' was not found"}},
		"facts cannot be gathered": {tasks: `
- name: Gather
  ansible.builtin.setup: {gather_subset: [nonsense]}
`, expected: expected{reason: failed, exit: 2, message: "nonsense"}},
		"a task cannot become another user": {tasks: `
- name: Become
  ansible.builtin.command: id
  become: true
  become_method: ansible.builtin.sudo
  become_user: daemon
  vars: {ansible_become_exe: /nowhere/sudo}
`, expected: expected{reason: failed, exit: 2, message: "task [@Become]"}},
		"a way to become that does not exist": {tasks: `
- name: Become
  ansible.builtin.command: id
  become: true
  become_method: nowhere
`, expected: expected{reason: failed, exit: 2, message: "nowhere"}},
		"a host cannot be reached": {tasks: `
- name: Connect
  ansible.builtin.ping:
  vars: {ansible_connection: ssh, ansible_host: 127.0.0.1, ansible_port: 1}
`, expected: expected{reason: unreachable, exit: 4, message: "Connection refused"}},
		"a host that cannot be reached is ignored": {tasks: `
- name: Connect
  ansible.builtin.ping:
  vars: {ansible_connection: ssh, ansible_host: 127.0.0.1, ansible_port: 1}
  ignore_unreachable: true
- name: Say
  ansible.builtin.debug: {msg: still here}
`},
		"a rescue does not help against a host that cannot be reached": {tasks: `
- name: Try
  block:
    - name: Connect
      ansible.builtin.ping:
      vars: {ansible_connection: ssh, ansible_host: 127.0.0.1, ansible_port: 1}
  rescue:
    - name: Mend
      ansible.builtin.debug: {msg: mended}
`, expected: expected{reason: unreachable, exit: 4, message: "Connection refused"}},
		"a way to connect that does not exist": {tasks: `
- name: Connect
  ansible.builtin.ping:
  vars: {ansible_connection: nowhere}
`, expected: expected{reason: failed, exit: 2, message: "nowhere"}},
		"a task is delegated to a host that cannot be reached": {tasks: `
- name: Connect
  ansible.builtin.ping:
  delegate_to: far
  vars: {ansible_connection: ssh, ansible_host: 127.0.0.1, ansible_port: 1}
`, expected: expected{reason: unreachable, exit: 4, message: "Connection refused"}},
		"a command is killed": {tasks: `
- name: Work
  ansible.builtin.shell: kill -9 $$
`, expected: expected{reason: failed, exit: 2, message: "ended by SIGKILL"}},
		"a module is killed": {tasks: `
- name: Work
  ansible.builtin.shell: kill -9 $PPID
`, expected: expected{reason: failed, exit: 2, message: "rc 137: ended by SIGKILL"}},
		"an asynchronous module is killed": {tasks: `
- name: Work
  ansible.builtin.shell: kill -9 $PPID
  async: 60
  poll: 1
`, expected: expected{reason: failed, exit: 2, message: "task [@Work]"}},
		"a worker is killed": {tasks: `
- name: Work
  ansible.builtin.debug: {msg: "{{ lookup('pipe', 'kill -9 $PPID') }}"}
`, expected: expected{reason: noStats, exit: 1, message: "for want of memory"}},
		"ansible-playbook is killed": {tasks: `
- name: Work
  ansible.builtin.debug: {msg: "{{ lookup('pipe', 'kill -9 $(cut -d\" \" -f4 /proc/$PPID/stat)') }}"}
`, expected: expected{reason: crashed, exit: -1, message: "for want of memory"}},
		"a task finds the disk full": {tasks: `
- name: Write
  ansible.builtin.shell: dd if=/dev/zero of=/dev/full count=1 || { echo No space left on device; exit 1; }
`, expected: expected{reason: failed, exit: 2, message: "task [@Write]"}},
		"check mode": {tasks: `
- name: Change
  ansible.builtin.file: {path: "@CONTENT@/made", state: directory}
`, args: "--check"},
		"a task fails in check mode": {tasks: `
- name: Fail
  ansible.builtin.fail: {msg: boom}
`, args: "--check", expected: expected{reason: failed, exit: 2, message: "boom"}},
		"a service does not answer": {tasks: `
- name: Ask
  ansible.builtin.uri: {url: "http://127.0.0.1:1/"}
`, expected: expected{reason: failed, exit: 2, message: "Connection refused"}},
		"a wait is in vain": {tasks: `
- name: Wait
  ansible.builtin.wait_for: {host: 127.0.0.1, port: 1, timeout: 1}
`, expected: expected{reason: failed, exit: 2, message: "Timeout when waiting for 127.0.0.1:1"}},
		"a question that nobody answers": {tasks: `
- name: Ask
  ansible.builtin.pause: {prompt: Go on}
`, timeout: 15 * time.Second, expected: expected{reason: timeout, message: "task [@Ask]"}, alone: true},
		"environment": {tasks: `
- name: Look
  ansible.builtin.shell: test "$COLOUR" = red
  environment: {COLOUR: red}
`},
		"the role's variables are data": {tasks: `
- name: Say
  ansible.builtin.fail: {msg: "{{ message }}"}
`, expected: expected{reason: failed, exit: 2, message: "{{ untrusted }}"}},
	}
}
