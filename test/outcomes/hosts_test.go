package outcomes

import "time"

// hosts are plays of which only a playbook can say what they are about: hosts,
// several plays, and keywords of a play.
func hosts() map[string]play {
	return map[string]play{
		"no host matches": {playbook: `
- name: Play
  hosts: nobody
  tasks:
    - name: Never
      ansible.builtin.debug: {msg: never}
`, reason: noHosts, message: "no host took part"},
		"a play without tasks": {playbook: `
- name: Play
  hosts: localhost
  gather_facts: false
`, reason: noHosts, message: "no host took part"},
		"an empty playbook":                  {playbook: "[]\n", reason: noStats, exit: 4, message: "must contain at least one play"},
		"a file without anything":            {playbook: "---\n", reason: noStats, exit: 4, message: "play.yml"},
		"a limit that leaves no host":        {playbook: two, inventory: fleet, args: "--limit nobody", reason: noStats, exit: 1, message: "limit"},
		"a limit that leaves the good hosts": {playbook: two, inventory: fleet, args: "--limit web1"},
		"one of several hosts fails":         {playbook: two, inventory: fleet, reason: failed, exit: 2, message: "host [web2]: boom"},
		"all of several hosts fail": {playbook: `
- name: Play
  hosts: all
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.fail: {msg: "boom on {{ inventory_hostname }}"}
`, inventory: fleet, reason: failed, exit: 2, message: "host [web4]: boom on web4"},
		"hosts fail, are rescued, ignored and unreachable": {playbook: `
- name: Play
  hosts: all
  gather_facts: false
  tasks:
    - name: Try
      block:
        - name: Work
          ansible.builtin.fail: {msg: rescued}
          when: inventory_hostname == 'web1'
      rescue:
        - name: Mend
          ansible.builtin.debug: {msg: mended}
    - name: Look
      ansible.builtin.fail: {msg: ignored}
      when: inventory_hostname == 'web2'
      ignore_errors: true
    - name: Connect
      ansible.builtin.ping:
      vars: {ansible_connection: "{{ 'ssh' if inventory_hostname == 'web3' else 'local' }}", ansible_host: 127.0.0.1, ansible_port: 1}
    - name: Fail
      ansible.builtin.fail: {msg: boom}
      when: inventory_hostname == 'web4'
`, inventory: fleet, reason: failed, exit: 4, message: "host [web4]: boom", silent: "rescued"},
		"one of several hosts cannot be reached": {playbook: `
- name: Play
  hosts: all
  gather_facts: false
  tasks:
    - name: Connect
      ansible.builtin.ping:
`, inventory: far, reason: unreachable, exit: 4, message: "host [far]"},
		"a host cannot be reached when facts are gathered": {playbook: `
- name: Play
  hosts: far
  tasks:
    - name: Never
      ansible.builtin.debug: {msg: never}
`, inventory: far, reason: unreachable, exit: 4, message: "host [far]"},
		"a lost host is ignored by the play": {playbook: `
- name: Play
  hosts: far
  gather_facts: false
  ignore_unreachable: true
  tasks:
    - name: Connect
      ansible.builtin.ping:
`, inventory: far},
		"a lost host, and the next play goes well without it": {playbook: `
- name: First
  hosts: far
  gather_facts: false
  tasks:
    - name: Connect
      ansible.builtin.ping:
- name: Second
  hosts: web1
  gather_facts: false
  tasks:
    - name: Say
      ansible.builtin.debug: {msg: fine}
`, inventory: far, reason: unreachable, exit: 4, message: "host [far]"},
		"a lost host is cleared": {playbook: `
- name: Play
  hosts: all
  gather_facts: false
  tasks:
    - name: Connect
      ansible.builtin.ping:
    - name: Clear
      ansible.builtin.meta: clear_host_errors
    - name: Say
      ansible.builtin.debug: {msg: fine}
`, inventory: far, reason: unreachable, message: "host [far]"},
		"a failed host is cleared": {playbook: `
- name: Play
  hosts: all
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.fail: {msg: boom}
      when: inventory_hostname == 'web2'
    - name: Clear
      ansible.builtin.meta: clear_host_errors
    - name: Say
      ansible.builtin.debug: {msg: fine}
`, inventory: fleet, reason: failed, message: "host [web2]: boom"},
		"hosts come one after the other, and the first fails": {playbook: `
- name: Play
  hosts: all
  serial: 1
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.fail: {msg: boom}
      when: inventory_hostname == 'web1'
`, inventory: fleet, reason: failed, exit: 2, message: "host [web1]: boom"},
		"hosts come two by two, and one of the second two fails": {playbook: `
- name: Play
  hosts: all
  serial: 2
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.fail: {msg: boom}
      when: inventory_hostname == 'web3'
`, inventory: fleet, reason: failed, exit: 2, message: "host [web3]: boom"},
		"fewer hosts fail than max_fail_percentage allows": {playbook: `
- name: Play
  hosts: all
  max_fail_percentage: 50
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.fail: {msg: boom}
      when: inventory_hostname == 'web1'
    - name: Say
      ansible.builtin.debug: {msg: fine}
`, inventory: fleet, reason: failed, exit: 2, message: "host [web1]: boom"},
		"more hosts fail than max_fail_percentage allows": {playbook: `
- name: Play
  hosts: all
  max_fail_percentage: 20
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.fail: {msg: boom}
      when: inventory_hostname == 'web1'
    - name: Never
      ansible.builtin.debug: {msg: never}
`, inventory: fleet, reason: failed, exit: 2, message: "host [web1]: boom"},
		"any error is fatal for all hosts": {playbook: `
- name: Play
  hosts: all
  any_errors_fatal: true
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.fail: {msg: boom}
      when: inventory_hostname == 'web1'
    - name: Never
      ansible.builtin.debug: {msg: never}
`, inventory: fleet, reason: failed, exit: 2, message: "host [web1]: boom"},
		"any error is fatal, but rescued": {playbook: `
- name: Play
  hosts: all
  any_errors_fatal: true
  gather_facts: false
  tasks:
    - name: Try
      block:
        - name: Work
          ansible.builtin.fail: {msg: boom}
          when: inventory_hostname == 'web1'
      rescue:
        - name: Mend
          ansible.builtin.debug: {msg: mended}
`, inventory: fleet},
		"hosts go on freely": {playbook: `
- name: Play
  hosts: all
  strategy: ansible.builtin.free
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.fail: {msg: "boom on {{ inventory_hostname }}"}
      when: inventory_hostname in ['web1', 'web3']
    - name: Then
      ansible.builtin.fail: {msg: "then on {{ inventory_hostname }}"}
      when: inventory_hostname == 'web2'
`, inventory: fleet, reason: failed, exit: 2, message: "host [web2]: then on web2"},
		"a host is pinned by host": {playbook: `
- name: Play
  hosts: all
  strategy: ansible.builtin.host_pinned
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.fail: {msg: boom}
      when: inventory_hostname == 'web4'
`, inventory: fleet, reason: failed, exit: 2, message: "host [web4]: boom"},
		"a strategy that does not exist": {playbook: `
- name: Play
  hosts: localhost
  strategy: nowhere
  gather_facts: false
  tasks:
    - name: Say
      ansible.builtin.debug: {msg: fine}
`, reason: noStats, exit: 1, message: "nowhere"},
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
`, reason: failed, exit: 2, message: "play [First], task [Work]"},
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
`, inventory: fleet, reason: failed, exit: 2, message: "host [web1]: boom"},
		"run_once fails for all hosts": {playbook: `
- name: Play
  hosts: all
  gather_facts: false
  tasks:
    - name: Once
      ansible.builtin.fail: {msg: boom}
      run_once: true
`, inventory: fleet, reason: failed, exit: 2, message: "boom"},
		"a delegated task fails": {playbook: `
- name: Play
  hosts: web1
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.command: "false"
      delegate_to: web2
`, inventory: fleet, reason: failed, exit: 2, message: "host [web1"},
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
`, inventory: fleet, reason: failed, exit: 2, message: "host [web1]: boom"},
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
`, inventory: fleet, reason: failed, exit: 2, message: "host [web2]: boom"},
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
`, reason: failed, exit: 2, message: "task [Before]"},
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
`, reason: failed, exit: 2, message: "task [After]"},
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
`}, reason: failed, exit: 2, message: "play [Other], task [Work]"},
		"a playbook to import is missing": {playbook: `
- name: Import
  ansible.builtin.import_playbook: nowhere.yml
`, reason: noStats, exit: 1, message: "nowhere.yml"},
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
`, reason: noStats, exit: 4, message: "colour"},
		"hosts are not defined": {playbook: `
- name: Play
  hosts: "{{ nobody_defines_this }}"
  tasks:
    - name: Say
      ansible.builtin.debug: {msg: fine}
`, reason: noStats, exit: 4, message: "nobody_defines_this"},
		"an encrypted playbook": {playbook: vault, reason: noStats, exit: 1, message: "ANSIBLE_VAULT_PASSWORD_FILE"},
		"the operator is asked for a value": {playbook: `
- name: Play
  hosts: localhost
  gather_facts: false
  vars_prompt:
    - name: colour
  tasks:
    - name: Say
      ansible.builtin.debug: {msg: fine}
`, timeout: 15 * time.Second, reason: timeout, message: "", alone: true},
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
`, reason: failed, exit: 2, message: "host [late]: boom"},
		"syntax is only checked": {playbook: two, inventory: fleet, args: "--syntax-check", reason: noStats, message: "ansible-runner exited with 0"},
		"tasks are only listed":  {playbook: two, inventory: fleet, args: "--list-tasks", reason: noStats, message: "ansible-runner exited with 0"},
	}
}

// two is a play in which one of four hosts fails.
const two = `
- name: Play
  hosts: all
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.fail: {msg: boom}
      when: inventory_hostname == 'web2'
`

// fleet are four hosts on this machine.
const fleet = `
[all]
web1
web2
web3
web4
[all:vars]
ansible_connection=local
ansible_python_interpreter=@PYTHON@
`

// far has a host that nobody answers for.
const far = `
[all]
web1 ansible_connection=local ansible_python_interpreter=@PYTHON@
far ansible_connection=ssh ansible_host=127.0.0.1 ansible_port=1
`
