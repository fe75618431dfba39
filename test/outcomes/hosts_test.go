package outcomes

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
`, expected: expected{reason: noHosts, message: "no host took part"}},
		"a play without tasks": {playbook: `
- name: Play
  hosts: localhost
  gather_facts: false
`},
		"an inventory without hosts": {playbook: `
- name: Play
  hosts: all
  gather_facts: false
`, inventory: "[all]\n", expected: expected{reason: noHosts, message: "no host took part"}},
		"an empty playbook":                  {playbook: "[]\n", expected: expected{reason: noStats, exit: 4, message: "must contain at least one play"}},
		"a file without anything":            {playbook: "---\n", expected: expected{reason: noStats, exit: 4, message: "play.yml"}},
		"a limit that leaves no host":        {playbook: two, inventory: fleet, args: "--limit nobody", expected: expected{reason: noStats, exit: 1, message: "limit"}},
		"a limit that leaves the good hosts": {playbook: two, inventory: fleet, args: "--limit web1"},
		"one of several hosts fails":         {playbook: two, inventory: fleet, expected: expected{reason: failed, exit: 2, message: "host [web2]: boom"}},
		"all of several hosts fail": {playbook: `
- name: Play
  hosts: all
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.fail: {msg: "boom on {{ inventory_hostname }}"}
`, inventory: fleet, expected: expected{reason: failed, exit: 2, message: "host [web4]: boom on web4"}},
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
`, inventory: fleet, expected: expected{reason: failed, exit: 4, message: "host [web4]: boom", silent: "rescued"}},
		"one of several hosts cannot be reached": {playbook: `
- name: Play
  hosts: all
  gather_facts: false
  tasks:
    - name: Connect
      ansible.builtin.ping:
`, inventory: far, expected: expected{reason: unreachable, exit: 4, message: "host [far]"}},
		"a host cannot be reached when facts are gathered": {playbook: `
- name: Play
  hosts: far
  tasks:
    - name: Never
      ansible.builtin.debug: {msg: never}
`, inventory: far, expected: expected{reason: unreachable, exit: 4, message: "host [far]"}},
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
`, inventory: far, expected: expected{reason: unreachable, exit: 4, message: "host [far]"}},
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
`, inventory: far, expected: expected{reason: unreachable, message: "host [far]"}},
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
`, inventory: fleet, expected: expected{reason: failed, message: "host [web2]: boom"}},
		"hosts come one after the other, and the first fails": {playbook: `
- name: Play
  hosts: all
  serial: 1
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.fail: {msg: boom}
      when: inventory_hostname == 'web1'
`, inventory: fleet, expected: expected{reason: failed, exit: 2, message: "host [web1]: boom"}},
		"hosts come two by two, and one of the second two fails": {playbook: `
- name: Play
  hosts: all
  serial: 2
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.fail: {msg: boom}
      when: inventory_hostname == 'web3'
`, inventory: fleet, expected: expected{reason: failed, exit: 2, message: "host [web3]: boom"}},
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
`, inventory: fleet, expected: expected{reason: failed, exit: 2, message: "host [web1]: boom"}},
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
`, inventory: fleet, expected: expected{reason: failed, exit: 2, message: "host [web1]: boom"}},
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
`, inventory: fleet, expected: expected{reason: failed, exit: 2, message: "host [web1]: boom"}},
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
`, inventory: fleet, expected: expected{reason: failed, exit: 2, message: "host [web2]: then on web2"}},
		"a host is pinned by host": {playbook: `
- name: Play
  hosts: all
  strategy: ansible.builtin.host_pinned
  gather_facts: false
  tasks:
    - name: Work
      ansible.builtin.fail: {msg: boom}
      when: inventory_hostname == 'web4'
`, inventory: fleet, expected: expected{reason: failed, exit: 2, message: "host [web4]: boom"}},
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
