// Package source walks the Ansible content of a project, as far as it can be known without a
// run: from each watch through roles, playbooks, tasks, handlers, blocks and includes. It keeps
// the file, line and column of all that it finds.
//
// Walk returns a Unit for each content of a watch: its tasks, the variables that it defines,
// and its texts with templates. The package reader says what the texts mean; Unit.Sources and
// Unit.Literals follow a variable through loops and to where it is defined. The package judges nothing.
package source
