// Package reader asks the Python environment about Ansible content: which names Jinja templates and
// expressions have (by Jinja's own parser), which plugins are installed and which packages they
// need, and whether Ansible's own loader takes playbooks and roles.
//
// Start starts one Python process for all questions. The program is below program/. It imports
// the content's plugins and executes nothing else of the content; no template is rendered.
package reader
