package outcomes

import "time"

// playbooks are plays about what else only a playbook can say: several plays,
// other playbooks, and keywords that are wrong.
func playbooks() map[string]play {
	return map[string]play{
		"a strategy that does not exist": {playbook: `
- name: Play
  hosts: localhost
  strategy: nowhere
  gather_facts: false
  tasks:
    - name: Say
      ansible.builtin.debug: {msg: fine}
`, expected: expected{reason: noStats, exit: 1, message: "nowhere"}},
		"the first play fails and the second has no host": {playbook: `
- name: First
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.fail: {msg: boom}
- name: Second
  hosts: nobody
  tasks:
    - name: Never
      ansible.builtin.debug: {msg: never}
`, expected: expected{reason: failed, exit: 2, message: "play [First], task [Work]"}},
		"no play has a host": {playbook: `
- name: First
  hosts: nobody
- name: Second
  hosts: nowhere
`, expected: expected{reason: noHosts, message: "no host took part"}},
		"the first play has no host and the second no task": {playbook: `
- name: First
  hosts: nobody
- name: Second
  hosts: localhost
  gather_facts: false
`},
		"the first play has no host and the second goes well": {playbook: `
- name: First
  hosts: nobody
  tasks:
    - name: Never
      ansible.builtin.debug: {msg: never}
- name: Second
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Say
      ansible.builtin.debug: {msg: fine}
`},
		"a failed host is left out of the second play, which goes well": {playbook: `
- name: First
  hosts: all
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.fail: {msg: boom}
      when: inventory_hostname == 'web1'
- name: Second
  hosts: all
  gather_facts: false
  tasks:
    - name: Say
      ansible.builtin.debug: {msg: fine}
`, inventory: fleet, expected: expected{reason: failed, exit: 2, message: "host [web1]: boom"}},
		"run_once fails for all hosts": {playbook: `
- name: Play
  hosts: all
  gather_facts: false
  tasks:
    - name: Once
      ansible.builtin.fail: {msg: boom}
      run_once: true
`, inventory: fleet, expected: expected{reason: failed, exit: 2, message: "boom"}},
		"a delegated task fails": {playbook: `
- name: Play
  hosts: web1
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.command: "false"
      delegate_to: web2
`, inventory: fleet, expected: expected{reason: failed, exit: 2, message: "host [web1"}},
		"end_play for one host of many": {playbook: `
- name: Play
  hosts: all
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.fail: {msg: boom}
      when: inventory_hostname == 'web1'
    - name: End
      ansible.builtin.meta: end_play
    - name: Never
      ansible.builtin.fail: {msg: never}
`, inventory: fleet, expected: expected{reason: failed, exit: 2, message: "host [web1]: boom"}},
		"end_host for one host, another fails": {playbook: `
- name: Play
  hosts: all
  gather_facts: false
  tasks:
    - name: End
      ansible.builtin.meta: end_host
      when: inventory_hostname == 'web1'
    - name: Work
      ansible.builtin.fail: {msg: boom}
      when: inventory_hostname in ['web1', 'web2']
`, inventory: fleet, expected: expected{reason: failed, exit: 2, message: "host [web2]: boom"}},
		"end_batch": {playbook: `
- name: Play
  hosts: all
  serial: 2
  gather_facts: false
  tasks:
    - name: Say
      ansible.builtin.debug: {msg: fine}
    - name: End
      ansible.builtin.meta: end_batch
    - name: Never
      ansible.builtin.fail: {msg: never}
`, inventory: fleet},
		"pre_tasks fail": {playbook: `
- name: Play
  hosts: localhost
  gather_facts: false
  pre_tasks:
    - name: Before
      ansible.builtin.fail: {msg: boom}
  tasks:
    - name: Never
      ansible.builtin.debug: {msg: never}
`, expected: expected{reason: failed, exit: 2, message: "task [Before]"}},
		"post_tasks fail": {playbook: `
- name: Play
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Say
      ansible.builtin.debug: {msg: fine}
  post_tasks:
    - name: After
      ansible.builtin.fail: {msg: boom}
`, expected: expected{reason: failed, exit: 2, message: "task [After]"}},
		"another playbook is imported and fails": {playbook: `
- name: Import
  ansible.builtin.import_playbook: other.yml
- name: Play
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Say
      ansible.builtin.debug: {msg: never, for this host is lost}
`, files: map[string]string{"other.yml": `
- name: Other
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.fail: {msg: boom}
`}, expected: expected{reason: failed, exit: 2, message: "play [Other], task [Work]"}},
		"a playbook to import is missing": {playbook: `
- name: Import
  ansible.builtin.import_playbook: nowhere.yml
`, expected: expected{reason: noStats, exit: 1, message: "nowhere.yml"}},
		"a file of variables is missing, which Ansible does not mind": {playbook: `
- name: Play
  hosts: localhost
  gather_facts: false
  vars_files: [nowhere.yml]
  tasks:
    - name: Say
      ansible.builtin.debug: {msg: fine}
`},
		"a keyword of a play that does not exist": {playbook: `
- name: Play
  hosts: localhost
  colour: red
`, expected: expected{reason: noStats, exit: 4, message: "colour"}},
		"hosts are not defined": {playbook: `
- name: Play
  hosts: "{{ nobody_defines_this }}"
  tasks:
    - name: Say
      ansible.builtin.debug: {msg: fine}
`, expected: expected{reason: noStats, exit: 4, message: "nobody_defines_this"}},
		"an encrypted playbook": {playbook: vault, expected: expected{reason: noStats, exit: 1, message: "ANSIBLE_VAULT_PASSWORD_FILE"}},
		"the operator is asked for a value": {playbook: `
- name: Play
  hosts: localhost
  gather_facts: false
  vars_prompt:
    - name: colour
  tasks:
    - name: Say
      ansible.builtin.debug: {msg: fine}
`, timeout: 15 * time.Second, expected: expected{reason: timeout, message: ""}, alone: true},
		"a host is added and fails": {playbook: `
- name: First
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Add
      ansible.builtin.add_host: {name: late, ansible_connection: local, ansible_python_interpreter: "@PYTHON@"}
- name: Second
  hosts: late
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.fail: {msg: boom}
`, expected: expected{reason: failed, exit: 2, message: "host [late]: boom"}},
		"syntax is only checked": {playbook: two, inventory: fleet, args: "--syntax-check", expected: expected{reason: noStats, message: "ansible-runner exited with 0"}},
		"tasks are only listed":  {playbook: two, inventory: fleet, args: "--list-tasks", expected: expected{reason: noStats, message: "ansible-runner exited with 0"}},
	}
}
