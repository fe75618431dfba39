package schema

import (
	"slices"
	"strings"
)

// reserved are the names that ansible-lint refuses for variables: keywords of plays, roles, blocks and tasks,
// functions of templates, and Python's keywords. The tests compare the list with Ansible's own.
//
//nolint:gochecknoglobals // A constant.
var reserved = strings.Fields(`action always any_errors_fatal args async async_val become become_exe become_flags become_method become_user
	block changed_when check_mode collections connection cycler debugger delay delegate_facts delegate_to dict diff environment fact_path
	failed_when force_handlers gather_facts gather_timeout handlers hosts ignore_errors ignore_unreachable joiner lipsum local_action lookup
	loop loop_control loop_with max_fail_percentage module_defaults name namespace no_log notify now omit order poll port post_tasks
	pre_tasks q query range register remote_user rescue retries roles run_once serial strategy tags tasks throttle timeout undef until
	validate_argspec vars vars_files vars_prompt when with_
	False None True and as assert await break class continue def del elif else except finally for from global if import in is lambda
	nonlocal not or pass raise return try while with yield`)

// Reserved reports whether ansible-lint refuses the name for a variable.
func Reserved(name string) bool { return slices.Contains(reserved, name) }
