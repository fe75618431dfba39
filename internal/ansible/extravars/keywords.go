package extravars

import (
	"slices"
	"strings"
)

// keywords returns the names, sorted, that Ansible reserves, of plays, roles, blocks and tasks, and of
// its templates. A variable with such a name works in most places, Ansible warns of it, and ansible-lint
// refuses it. A test of test/safevars compares them with those of ansible-core.
func keywords() []string {
	return strings.Fields(`action always any_errors_fatal args async async_val become become_exe become_flags
		become_method become_user block changed_when check_mode collections connection cycler debugger delay delegate_facts
		delegate_to dict diff environment fact_path failed_when force_handlers gather_facts gather_timeout handlers hosts
		ignore_errors ignore_unreachable joiner lipsum local_action lookup loop loop_control loop_with max_fail_percentage
		module_defaults name namespace no_log notify now omit order poll port post_tasks pre_tasks q query range register
		remote_user rescue retries roles run_once serial strategy tags tasks throttle timeout undef until validate_argspec vars
		vars_files vars_prompt when with_`)
}

// IsKeyword reports whether Ansible reserves the name of a variable.
func IsKeyword(name string) bool {
	_, found := slices.BinarySearch(keywords(), name)
	return found
}
